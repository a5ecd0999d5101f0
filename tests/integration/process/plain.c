// A program that knows nothing of Sonde.
int main(void) { return 0; }
