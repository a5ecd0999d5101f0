// The same assertions, as C++20.
#include "layout.c"
