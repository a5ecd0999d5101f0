/* A program that embeds Sonde, in C.
 *
 * It opens a run with the analysis `workload`, says what it does (a scope, an allocation, pieces of work that are shown
 * like kernels), and reads the analysis's table of kernels at the end.
 *
 *   host_c [ANALYSIS]      another analysis than `workload`; its tables are listed
 */
#include <sonde/sonde.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program_t {
  const sonde_host_t *host;
  const sonde_config_service_t *configs;
  const sonde_run_service_t *runs;
  const sonde_capture_service_t *capture;
  const sonde_result_service_t *results;
  sonde_session_t *session;
  sonde_writer_t *writer; /* this thread's; a second thread would fetch its own */
} program_t;

static void check(const program_t *program, sonde_status status, const char *what) {
  if (status == SONDE_OK) return;
  fprintf(stderr, "%s: %s\n", what, program->host->last_error());
  exit(1);
}

static const void *service(const program_t *program, const char *id, uint32_t size) {
  const void *table = NULL;
  check(program, program->host->get_service(id, size, &table), id);
  return table;
}

static sonde_string_t intern(const program_t *program, const char *text) {
  sonde_string_t id = 0;
  check(program, program->capture->intern(text, UINT64_MAX, &id), "intern");
  return id;
}

/* A record that finds no room is dropped and counted; a program goes on either way. */
static void write_record(const program_t *program, const void *record, uint32_t bytes) {
  if (!sonde_write(program->capture, program->writer, record, bytes)) fputs("one record was dropped\n", stderr);
}

static void push_scope(const program_t *program, const char *name) {
  sonde_framework_scope_t scope;
  memset(&scope, 0, sizeof(scope));
  SONDE_RECORD_INIT(&scope, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, sonde_stamp());
  scope.name = intern(program, name);
  write_record(program, &scope, sizeof(scope));
}

static void pop_scope(const program_t *program) {
  sonde_framework_scope_end_t end;
  memset(&end, 0, sizeof(end));
  SONDE_RECORD_INIT(&end, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_POP, sonde_stamp());
  write_record(program, &end, sizeof(end));
}

static void *allocate(const program_t *program, size_t bytes, const char *name) {
  void *const memory = malloc(bytes);
  if (memory == NULL) {
    fputs("out of memory\n", stderr);
    exit(1);
  }
  sonde_memory_allocate_t record;
  memset(&record, 0, sizeof(record));
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, sonde_stamp());
  record.address = (uint64_t)(uintptr_t)memory;
  record.bytes = bytes;
  record.kind = SONDE_MEMORY_PAGEABLE;
  record.name = intern(program, name);
  write_record(program, &record, sizeof(record));
  return memory;
}

static void release(const program_t *program, void *memory) {
  sonde_memory_free_t record;
  memset(&record, 0, sizeof(record));
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, sonde_stamp());
  record.address = (uint64_t)(uintptr_t)memory;
  record.kind = SONDE_MEMORY_PAGEABLE;
  write_record(program, &record, sizeof(record));
  free(memory);
}

/* One piece of work, shown like a kernel: y = a * x + y. */
static void saxpy(const program_t *program, float a, const float *x, float *y, size_t count) {
  sonde_device_kernel_t kernel;
  memset(&kernel, 0, sizeof(kernel));
  SONDE_RECORD_INIT(&kernel, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, sonde_stamp());
  for (size_t index = 0; index < count; ++index) y[index] += a * x[index];
  kernel.end = sonde_stamp();
  kernel.name = intern(program, "saxpy");
  kernel.stream = 1;
  kernel.grid[0] = (uint32_t)(count / 256);
  kernel.grid[1] = kernel.grid[2] = 1;
  kernel.block[0] = 256;
  kernel.block[1] = kernel.block[2] = 1;
  write_record(program, &kernel, sizeof(kernel));
}

static void work(const program_t *program) {
  enum { kCount = 1 << 16, kSteps = 10 };
  push_scope(program, "work");
  float *const x = allocate(program, kCount * sizeof(float), "x");
  float *const y = allocate(program, kCount * sizeof(float), "y");
  for (size_t index = 0; index < kCount; ++index) {
    x[index] = (float)index;
    y[index] = 1;
  }
  for (int step = 0; step < kSteps; ++step) saxpy(program, 0.5f, x, y, kCount);
  printf("y[2] = %.1f\n", y[2]); /* 1 + 10 * 0.5 * 2 = 11 */
  release(program, y);
  release(program, x);
  pop_scope(program);
}

static void print_cell(const sonde_value_t *cell) {
  switch (cell->kind) {
    case SONDE_VALUE_I64:
      printf("%lld", (long long)cell->as.i64);
      break;
    case SONDE_VALUE_U64:
    case SONDE_VALUE_BOOL:
      printf("%llu", (unsigned long long)cell->as.u64);
      break;
    case SONDE_VALUE_F64:
      printf("%g", cell->as.f64);
      break;
    case SONDE_VALUE_TEXT:
      fputs(cell->as.text, stdout);
      break;
    default:
      putchar('-');
  }
}

/* Every table describes itself, so one function shows any analysis's result. Returns the table's number of rows. */
static uint64_t print_table(const program_t *program, sonde_table_t *table) {
  const sonde_table_spec_t *spec = NULL;
  uint64_t rows = 0;
  check(program, program->results->table_spec(table, &spec), "table_spec");
  check(program, program->results->row_count(table, &rows), "row_count");
  printf("%s.%s: %llu rows\n", spec->origin, spec->name, (unsigned long long)rows);
  for (uint64_t row = 0; row < rows && row < 3; ++row) {
    for (uint32_t column = 0; column < spec->column_count; ++column) {
      const sonde_column_spec_t *const described =
          (const sonde_column_spec_t *)((const char *)spec->columns + (size_t)column * spec->column_stride);
      sonde_value_t cell;
      if (described->flags & SONDE_COLUMN_HIDDEN) continue;
      check(program, program->results->cell(table, row, column, &cell), "cell");
      printf("  %s=", described->name);
      print_cell(&cell);
      if (*described->unit != '\0' && strcmp(described->unit, "1") != 0) printf(" %s", described->unit);
    }
    putchar('\n');
  }
  return rows;
}

int main(int argc, char **argv) {
  const char *const analysis = argc > 1 ? argv[1] : "workload";
  program_t program;
  memset(&program, 0, sizeof(program));
  program.host = sonde_host();
  program.configs = service(&program, SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, release));
  program.runs = service(&program, SONDE_RUN_SERVICE, SONDE_NEED(sonde_run_service_t, close));
  program.capture = service(&program, SONDE_CAPTURE_SERVICE, SONDE_NEED(sonde_capture_service_t, intern));
  program.results = service(&program, SONDE_RESULT_SERVICE, SONDE_NEED(sonde_result_service_t, cell));

  char yaml[512];
  snprintf(yaml, sizeof(yaml), "analyses: {\"%s\": {}}\n", analysis);
  sonde_config_t *config = NULL;
  check(&program, program.configs->parse(yaml, "host_c", &config), "configuration");
  sonde_run_t *run = NULL;
  check(&program, program.runs->open(config, &run), "open");
  check(&program, program.configs->release(config), "release");
  check(&program, program.runs->session(run, &program.session), "session");
  check(&program, program.runs->start(run), "start");
  check(&program, program.capture->writer(program.session, &program.writer), "writer");

  work(&program);

  check(&program, program.runs->finish(run), "finish");
  uint64_t tables = 0;
  check(&program, program.results->table_count(program.session, &tables), "table_count");
  uint64_t kernel_rows = 0;
  for (uint64_t index = 0; index < tables; ++index) {
    sonde_table_t *table = NULL;
    const sonde_table_spec_t *spec = NULL;
    check(&program, program.results->table_at(program.session, index, &table), "table_at");
    check(&program, program.results->table_spec(table, &spec), "table_spec");
    const uint64_t rows = print_table(&program, table);
    if (strcmp(spec->name, "kernels") == 0) kernel_rows = rows;
  }
  check(&program, program.runs->close(run), "close");
  if (strcmp(analysis, "workload") == 0 && kernel_rows != 1) {
    fprintf(stderr, "expected one kernel name in workload.kernels, got %llu\n", (unsigned long long)kernel_rows);
    return 1;
  }
  return 0;
}
