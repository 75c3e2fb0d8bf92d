/* A stand-in for libnvidia-ml.so.1, driven by the unmodified pynvml.
 *
 * STUB_NVML_GPUS=h200,h200,a100   which GPUs there are (none: as if not installed)
 * STUB_NVML_STATE=/path           a file that holds `struct state`, mapped by this
 *                                 library and by the test (see __init__.py): values,
 *                                 faults and call counts, changed while a server runs
 *
 * It is honest about what costs time and trouble on the real chip: delays as measured
 * on an H200, GPM windows under 100 ms that read 0.0 and NaN with success codes,
 * unknown GPM ids that read 0.0, nothing that works after a fork without a new init.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_GPUS 16
#define MAX_FUNCTIONS 128
#define MAX_PROCESSES 8
#define MAX_INSTANCES 7
#define MAX_EVENTS 32
#define GPM_IDS 128
#define EVERY_GPU -1

enum {
  SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7, TIMEOUT = 10, LIBRARY_NOT_FOUND = 12, VERSION_MISMATCH = 25
};

/* Mirrored field by field in __init__.py. */
struct function {
  char name[64];
  int rc;          /* returned instead of doing the work */
  int gpu;         /* whom rc and delay_ms hit, or EVERY_GPU */
  double delay_ms; /* negative: as long as on an H200 */
  uint64_t calls;
};

struct instance {
  int present; /* 0: destroyed, or not yet created */
  int gpu_instance, compute_instance, slices, multiprocessors;
  unsigned pid; /* of its one process, or 0 */
  uint64_t memory_total_bytes, memory_used_bytes;
  double gpm[GPM_IDS];
};

struct event {
  int gpu, gpu_instance; /* an instance of -1: the whole GPU */
  uint64_t type, data;
};

struct gpu {
  char shape[16];
  char name[96];
  int rc; /* returned by every call on this GPU; 15: lost */
  int gpm_supported, mig, nvlinks;
  int capability_major, capability_minor, cores, bus_bits, pcie_generation, pcie_width;
  int process_count;
  unsigned pids[MAX_PROCESSES];
  int process_kinds[MAX_PROCESSES]; /* lists that have it: 1 compute, 2 graphics, 4 MPS */
  uint64_t process_bytes[MAX_PROCESSES];
  unsigned process_sm_percent[MAX_PROCESSES]; /* 0: it does not work, and is not told */
  uint64_t memory_total_bytes, memory_reserved_bytes, memory_used_bytes;
  uint64_t energy_mj, clocks_event_reasons;
  double utilization_percent, memory_utilization_percent;
  double power_mw, power_limit_mw, temperature_celsius;
  double sm_clock_mhz, memory_clock_mhz, sm_clock_max_mhz, memory_clock_max_mhz;
  double pcie_tx_kb_per_s, pcie_rx_kb_per_s;
  double memory_temperature_celsius, slowdown_celsius, shutdown_celsius;
  double encoder_percent, decoder_percent, jpeg_percent, optical_flow_percent;
  int pcie_generation_now, pcie_width_now, performance_state;
  int has_ecc, remaps_rows, rows_pending, rows_failed, pages_pending;
  int rows_corrected, rows_uncorrected, pages_single, pages_double;
  uint64_t ecc[4]; /* corrected and uncorrected, volatile; the same, aggregate */
  uint64_t event_types;
  struct instance instances[MAX_INSTANCES];
  double gpm[GPM_IDS]; /* by metric id, in NVML's units: percent, MiB/s */
};

struct state {
  int gpu_count;
  int no_delays; /* 1: calls take no time unless a fault says so */
  int64_t gpm_samples; /* allocated and not yet freed */
  double shortest_window_ms; /* that GPM was asked for */
  int64_t event_sets; /* made and not yet freed */
  int event_count, event_next; /* rung by the test, taken by the program */
  struct event events[MAX_EVENTS];
  struct function functions[MAX_FUNCTIONS];
  struct gpu gpus[MAX_GPUS];
};

typedef int ret;
typedef struct { int index; } dev;

static struct state own, *state = &own;
/* the GPUs, then the instances of each */
static dev devices[MAX_GPUS + MAX_GPUS * MAX_INSTANCES];
static int references;
static pid_t owner;

/* ---- shapes ---------------------------------------------------------------- */

static void shape_h200(struct gpu *g) {
  strcpy(g->name, "NVIDIA H200");
  g->gpm_supported = 1;
  g->capability_major = 9;
  g->cores = 16896;
  g->bus_bits = 6016; /* as a real one answers */
  g->pcie_generation = 5;
  g->memory_total_bytes = 150754820096;
  g->memory_reserved_bytes = 644939776;
  g->remaps_rows = 1;
  g->has_ecc = 1;
  g->memory_temperature_celsius = 41;
  g->slowdown_celsius = 90;
  g->shutdown_celsius = 95;
  g->power_mw = 122289;
  g->power_limit_mw = 700000;
  g->sm_clock_max_mhz = g->sm_clock_mhz = 1980;
  g->memory_clock_max_mhz = g->memory_clock_mhz = 3201;
}

static void shape_a100(struct gpu *g) {
  strcpy(g->name, "NVIDIA A100-SXM4-80GB");
  g->capability_major = 8;
  g->cores = 6912;
  g->bus_bits = 5120;
  g->pcie_generation = 4;
  g->memory_total_bytes = 85899345920;
  g->memory_reserved_bytes = 641728512;
  g->remaps_rows = 1;
  g->has_ecc = 1;
  g->memory_temperature_celsius = 38;
  g->slowdown_celsius = 89;
  g->shutdown_celsius = 92;
  g->power_mw = 61230;
  g->power_limit_mw = 400000;
  g->sm_clock_mhz = 210;
  g->sm_clock_max_mhz = 1410;
  g->memory_clock_max_mhz = g->memory_clock_mhz = 1593;
}

/* As T4, L4 and GeForce: neither GPM nor NVLink, nor a sensor in the memory. */
static void shape_t4(struct gpu *g) {
  strcpy(g->name, "Tesla T4");
  g->capability_major = 7;
  g->capability_minor = 5;
  g->cores = 2560;
  g->bus_bits = 256;
  g->pcie_generation = 3;
  g->has_ecc = 1;
  g->memory_total_bytes = 16106127360;
  g->memory_reserved_bytes = 444071936;
  g->slowdown_celsius = 93;
  g->shutdown_celsius = 96;
  g->power_mw = 13000;
  g->power_limit_mw = 70000;
  g->sm_clock_mhz = 300;
  g->sm_clock_max_mhz = 1590;
  g->memory_clock_max_mhz = g->memory_clock_mhz = 5001;
}

/* Fills the state with idle GPUs: "h200,a100". 0, or -1 for an unknown shape. */
int stub_nvml_shape(struct state *s, const char *gpus) {
  char names[256];
  snprintf(names, sizeof names, "%s", gpus);
  s->gpu_count = 0;
  s->shortest_window_ms = INFINITY;
  for (char *name = strtok(names, ","); name && s->gpu_count < MAX_GPUS; name = strtok(NULL, ",")) {
    struct gpu *g = &s->gpus[s->gpu_count++];
    memset(g, 0, sizeof *g);
    snprintf(g->shape, sizeof g->shape, "%s", name);
    if (!strcmp(name, "h200")) shape_h200(g);
    else if (!strcmp(name, "a100")) shape_a100(g);
    else if (!strcmp(name, "t4")) shape_t4(g);
    else return -1;
    g->pcie_width = g->pcie_width_now = 16;
    g->pcie_generation_now = g->pcie_generation;
    g->event_types = 0xE9F; /* as an H200 answers, and retirement */
    g->temperature_celsius = 36;
    g->energy_mj = 11439037;
    g->clocks_event_reasons = 1; /* idle */
    g->pcie_tx_kb_per_s = g->pcie_rx_kb_per_s = 718;
  }
  /* a GPU alone has no NVLink that is up: measured on a one-GPU machine */
  for (int i = 0; i < s->gpu_count && s->gpu_count > 1; i++)
    if (s->gpus[i].capability_major >= 8)
      s->gpus[i].nvlinks = s->gpus[i].gpm_supported ? 18 : 12;
  return 0;
}

size_t stub_nvml_state_size(void) { return sizeof(struct state); }

/* ---- what every call does first --------------------------------------------- */

static const struct { const char *name; double ms; } H200_DELAYS[] = {
  { "nvmlDeviceGetTotalEnergyConsumption", 2.85 },
  { "nvmlDeviceGetPcieThroughput", 20.9 },
  { "nvmlGpmSampleGet", 0.03 },
  { "nvmlGpmMetricsGet", 1.2 },
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static struct function *find(const char *name) {
  struct function *f = state->functions;
  for (; f < state->functions + MAX_FUNCTIONS - 1 && f->name[0]; f++)
    if (!strcmp(f->name, name)) return f;
  snprintf(f->name, sizeof f->name, "%s", name);
  f->delay_ms = -1;
  f->gpu = EVERY_GPU;
  return f;
}

static double delay_ms(const struct function *f, int gpu) {
  if (f->delay_ms >= 0 && (f->gpu == EVERY_GPU || f->gpu == gpu)) return f->delay_ms;
  if (state->no_delays) return 0;
  for (size_t i = 0; i < sizeof H200_DELAYS / sizeof *H200_DELAYS; i++)
    if (!strcmp(H200_DELAYS[i].name, f->name)) return H200_DELAYS[i].ms;
  return 0;
}

/* In slices, so that a test can end a hang by taking the fault back. */
static void take_time(const struct function *f, int gpu) {
  int64_t begun = now_ns();
  for (;;) {
    double left_ms = delay_ms(f, gpu) - (now_ns() - begun) / 1e6;
    if (left_ms <= 0) return;
    if (left_ms > 20) left_ms = 20;
    struct timespec t = { 0, (long)(left_ms * 1e6) };
    nanosleep(&t, NULL);
  }
}

static ret enter(const char *name, int gpu) {
  struct function *f = find(name);
  __sync_fetch_and_add(&f->calls, 1);
  take_time(f, gpu);
  if (f->rc && (f->gpu == EVERY_GPU || f->gpu == gpu)) return f->rc;
  return SUCCESS;
}

static int is_running(void) { return references && owner == getpid(); }

static int is_instance(const dev *d) { return d - devices >= MAX_GPUS; }
static int gpu_of(const dev *d) { return is_instance(d) ? (d->index - MAX_GPUS) / MAX_INSTANCES : d->index; }
static struct instance *instance_of(const dev *d) {
  return &state->gpus[gpu_of(d)].instances[(d->index - MAX_GPUS) % MAX_INSTANCES];
}

static ret enter_gpu(const char *name, dev *d) {
  if (!is_running()) return UNINITIALIZED;
  if (!d || d < devices || d >= devices + sizeof devices / sizeof *devices) return INVALID_ARGUMENT;
  if (gpu_of(d) >= state->gpu_count) return INVALID_ARGUMENT;
  ret rc = enter(name, gpu_of(d));
  if (!rc) rc = state->gpus[gpu_of(d)].rc;
  return !rc && is_instance(d) && !instance_of(d)->present ? NOT_FOUND : rc;
}

/* a call that MIG instances answer too */
#define ENTER_ANY(d) ret rc_ = enter_gpu(__func__, d); if (rc_) return rc_; struct gpu *g = &state->gpus[gpu_of(d)]; (void)g
#define ENTER(d) ENTER_ANY(d); if (is_instance(d)) return NOT_SUPPORTED
#define ENTER_SYSTEM() if (!is_running()) return UNINITIALIZED; ret rc_ = enter(__func__, EVERY_GPU); if (rc_) return rc_

static ret text(char *buffer, unsigned size, const char *s) {
  if (strlen(s) + 1 > size) return INSUFFICIENT_SIZE;
  strcpy(buffer, s);
  return SUCCESS;
}

/* Threads that use GPM before a window was read end the process (see monitors' nvml/gpm.py). */
static int gpm_start, gpm_samplers, gpm_was_read;

/* ---- starting and ending ------------------------------------------------------ */

static ret init(const char *name) {
  const char *gpus = getenv("STUB_NVML_GPUS"), *path = getenv("STUB_NVML_STATE");
  if (!gpus) return LIBRARY_NOT_FOUND;
  if (!is_running()) {
    if (state != &own) munmap(state, sizeof *state);
    state = &own;
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd >= 0) {
      void *map = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      close(fd);
      if (map != MAP_FAILED) state = map;
    }
    if (state == &own && stub_nvml_shape(state, gpus)) return INVALID_ARGUMENT;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) devices[i].index = i;
    references = 0;
    owner = getpid();
    gpm_start++;
    gpm_samplers = gpm_was_read = 0;
  }
  ret rc = enter(name, EVERY_GPU);
  if (rc) return rc;
  references++;
  return SUCCESS;
}

ret nvmlInitWithFlags(unsigned flags) { (void)flags; return init(__func__); }
ret nvmlInit_v2(void) { return init(__func__); }
ret nvmlShutdown(void) { ENTER_SYSTEM(); references--; return SUCCESS; }

const char *nvmlErrorString(ret rc) { return rc == VERSION_MISMATCH ? "Argument version mismatch" : "Unknown Error"; }

/* ---- the system and its GPUs --------------------------------------------------- */

ret nvmlSystemGetDriverVersion(char *b, unsigned n) { ENTER_SYSTEM(); return text(b, n, "580.159.04"); }
ret nvmlSystemGetNVMLVersion(char *b, unsigned n) { ENTER_SYSTEM(); return text(b, n, "13.580.159.04"); }
ret nvmlSystemGetCudaDriverVersion(int *v) { ENTER_SYSTEM(); *v = 13000; return SUCCESS; }
ret nvmlSystemGetCudaDriverVersion_v2(int *v) { ENTER_SYSTEM(); *v = 13000; return SUCCESS; }
ret nvmlDeviceGetCount_v2(unsigned *n) { ENTER_SYSTEM(); *n = state->gpu_count; return SUCCESS; }

ret nvmlDeviceGetHandleByIndex_v2(unsigned index, dev **d) {
  if (!is_running()) return UNINITIALIZED;
  if ((int)index >= state->gpu_count) return INVALID_ARGUMENT;
  *d = devices + index;
  return enter_gpu(__func__, *d);
}

static void uuid(int index, char *b) {
  sprintf(b, "%s-57ab0000-0000-4000-8000-%012d", index < MAX_GPUS ? "GPU" : "MIG", index);
}

ret nvmlDeviceGetHandleByUUID(const char *wanted, dev **d) {
  if (!is_running()) return UNINITIALIZED;
  for (dev *each = devices; each < devices + sizeof devices / sizeof *devices; each++) {
    char b[64];
    uuid(each->index, b);
    if (!strcmp(b, wanted)) { *d = each; return enter_gpu(__func__, *d); }
  }
  return NOT_FOUND;
}

ret nvmlDeviceGetIndex(dev *d, unsigned *i) { ENTER(d); *i = d->index; return SUCCESS; }
ret nvmlDeviceGetMinorNumber(dev *d, unsigned *i) { ENTER(d); *i = d->index; return SUCCESS; }
ret nvmlDeviceGetName(dev *d, char *b, unsigned n) {
  ENTER_ANY(d);
  if (!is_instance(d)) return text(b, n, g->name);
  char name[160];
  struct instance *m = instance_of(d);
  snprintf(name, sizeof name, "%s MIG %dg.%dgb", g->name, m->slices, (int)(m->memory_total_bytes >> 30));
  return text(b, n, name);
}
ret nvmlDeviceGetUUID(dev *d, char *b, unsigned n) { ENTER_ANY(d); char s[64]; uuid(d->index, s); return text(b, n, s); }

/* ---- what does not change -------------------------------------------------------- */

ret nvmlDeviceGetCudaComputeCapability(dev *d, int *major, int *minor) { ENTER(d); *major = g->capability_major; *minor = g->capability_minor; return SUCCESS; }
ret nvmlDeviceGetNumGpuCores(dev *d, unsigned *v) { ENTER(d); *v = g->cores; return SUCCESS; }
ret nvmlDeviceGetMemoryBusWidth(dev *d, unsigned *v) { ENTER(d); *v = g->bus_bits; return SUCCESS; }
ret nvmlDeviceGetMaxPcieLinkGeneration(dev *d, unsigned *v) { ENTER(d); *v = g->pcie_generation; return SUCCESS; }
ret nvmlDeviceGetCurrPcieLinkGeneration(dev *d, unsigned *v) { ENTER(d); *v = g->pcie_generation_now; return SUCCESS; }
ret nvmlDeviceGetMaxPcieLinkWidth(dev *d, unsigned *v) { ENTER(d); *v = g->pcie_width; return SUCCESS; }
ret nvmlDeviceGetCurrPcieLinkWidth(dev *d, unsigned *v) { ENTER(d); *v = g->pcie_width_now; return SUCCESS; }
ret nvmlDeviceGetMaxClockInfo(dev *d, int type, unsigned *v) { ENTER(d); *v = type == 2 ? g->memory_clock_max_mhz : g->sm_clock_max_mhz; return SUCCESS; }
ret nvmlDeviceGetEnforcedPowerLimit(dev *d, unsigned *v) { ENTER(d); *v = g->power_limit_mw; return SUCCESS; }
ret nvmlDeviceGetTemperatureThreshold(dev *d, int which, unsigned *v) {
  ENTER(d);
  if (which > 1) return NOT_SUPPORTED;
  *v = which ? g->slowdown_celsius : g->shutdown_celsius;
  return SUCCESS;
}
ret nvmlDeviceGetEccMode(dev *d, int *now, int *pending) {
  ENTER(d);
  *now = *pending = g->has_ecc;
  return SUCCESS;
}
ret nvmlDeviceGetMigMode(dev *d, unsigned *now, unsigned *pending) { ENTER(d); *now = *pending = g->mig; return SUCCESS; }

ret nvmlDeviceGetNvLinkState(dev *d, unsigned link, unsigned *active) {
  ENTER(d);
  if (!g->nvlinks) return NOT_SUPPORTED;
  if ((int)link >= g->nvlinks) return INVALID_ARGUMENT;
  *active = 1;
  return SUCCESS;
}

ret nvmlDeviceGetNvLinkVersion(dev *d, unsigned link, unsigned *v) {
  ENTER(d);
  if (!g->nvlinks) return NOT_SUPPORTED;
  if ((int)link >= g->nvlinks) return INVALID_ARGUMENT;
  *v = 7;
  return SUCCESS;
}

/* ---- MIG ------------------------------------------------------------------------- */

ret nvmlDeviceGetMaxMigDeviceCount(dev *d, unsigned *n) { ENTER(d); *n = g->mig ? MAX_INSTANCES : 0; return SUCCESS; }

ret nvmlDeviceGetMigDeviceHandleByIndex(dev *d, unsigned i, dev **instance) {
  ENTER(d);
  if (!g->mig || i >= MAX_INSTANCES) return INVALID_ARGUMENT;
  *instance = devices + MAX_GPUS + d->index * MAX_INSTANCES + i;
  return g->instances[i].present ? SUCCESS : NOT_FOUND;
}

ret nvmlDeviceGetGpuInstanceId(dev *d, unsigned *v) { ENTER_ANY(d); if (!is_instance(d)) return NOT_SUPPORTED; *v = instance_of(d)->gpu_instance; return SUCCESS; }
ret nvmlDeviceGetComputeInstanceId(dev *d, unsigned *v) { ENTER_ANY(d); if (!is_instance(d)) return NOT_SUPPORTED; *v = instance_of(d)->compute_instance; return SUCCESS; }

struct attributes { unsigned multiprocessors, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices; unsigned long long memory_mb; };
ret nvmlDeviceGetAttributes_v2(dev *d, struct attributes *a) {
  ENTER_ANY(d);
  if (!is_instance(d)) return NOT_SUPPORTED;
  struct instance *m = instance_of(d);
  *a = (struct attributes){ m->multiprocessors, m->slices, m->slices, 0, m->slices, 0, m->slices, m->slices, m->memory_total_bytes >> 20 };
  return SUCCESS;
}

/* ---- what is read again and again --------------------------------------------------- */

struct utilization { unsigned gpu, memory; };
ret nvmlDeviceGetUtilizationRates(dev *d, struct utilization *u) {
  ENTER(d);
  if (g->mig) return NOT_SUPPORTED;
  u->gpu = g->utilization_percent;
  u->memory = g->memory_utilization_percent;
  return SUCCESS;
}

struct memory { unsigned long long total, free, used; };
ret nvmlDeviceGetMemoryInfo(dev *d, struct memory *m) {
  ENTER_ANY(d);
  if (is_instance(d)) {
    m->total = instance_of(d)->memory_total_bytes;
    m->used = instance_of(d)->memory_used_bytes;
    m->free = m->total - m->used;
    return SUCCESS;
  }
  m->total = g->memory_total_bytes;
  m->used = g->memory_used_bytes + g->memory_reserved_bytes;
  m->free = m->total - m->used;
  return SUCCESS;
}

struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
#ifndef OLD_DRIVER
ret nvmlDeviceGetMemoryInfo_v2(dev *d, struct memory_v2 *m) {
  ENTER_ANY(d);
  if (m->version != 0x02000028) return VERSION_MISMATCH;
  if (is_instance(d)) {
    m->total = instance_of(d)->memory_total_bytes;
    m->used = instance_of(d)->memory_used_bytes;
    m->reserved = 0;
    m->free = m->total - m->used;
    return SUCCESS;
  }
  m->total = g->memory_total_bytes;
  m->reserved = g->memory_reserved_bytes;
  m->used = g->memory_used_bytes;
  m->free = m->total - m->used - m->reserved;
  return SUCCESS;
}
ret nvmlDeviceGetCurrentClocksEventReasons(dev *d, unsigned long long *v) { ENTER(d); *v = g->clocks_event_reasons; return SUCCESS; }
struct temperature { unsigned version; int sensor, celsius; };
ret nvmlDeviceGetTemperatureV(dev *d, struct temperature *t) {
  ENTER(d);
  if (t->version != 0x100000C) return VERSION_MISMATCH;
  t->celsius = g->temperature_celsius;
  return SUCCESS;
}
#endif

ret nvmlDeviceGetCurrentClocksThrottleReasons(dev *d, unsigned long long *v) { ENTER(d); *v = g->clocks_event_reasons; return SUCCESS; }
ret nvmlDeviceGetPowerUsage(dev *d, unsigned *v) { ENTER(d); *v = g->power_mw; return SUCCESS; }
ret nvmlDeviceGetTemperature(dev *d, int sensor, unsigned *v) { (void)sensor; ENTER(d); *v = g->temperature_celsius; return SUCCESS; }
ret nvmlDeviceGetClockInfo(dev *d, int type, unsigned *v) { ENTER(d); *v = type == 2 ? g->memory_clock_mhz : g->sm_clock_mhz; return SUCCESS; }
ret nvmlDeviceGetTotalEnergyConsumption(dev *d, unsigned long long *v) { ENTER(d); *v = g->energy_mj; return SUCCESS; }
ret nvmlDeviceGetPcieThroughput(dev *d, int counter, unsigned *v) { ENTER(d); *v = counter == 0 ? g->pcie_tx_kb_per_s : g->pcie_rx_kb_per_s; return SUCCESS; }

ret nvmlDeviceGetPerformanceState(dev *d, unsigned *v) { ENTER(d); *v = g->performance_state; return SUCCESS; }
ret nvmlDeviceGetEncoderUtilization(dev *d, unsigned *v, unsigned *period_us) { ENTER(d); *v = g->encoder_percent; *period_us = 167000; return SUCCESS; }
ret nvmlDeviceGetDecoderUtilization(dev *d, unsigned *v, unsigned *period_us) { ENTER(d); *v = g->decoder_percent; *period_us = 167000; return SUCCESS; }
#ifndef OLD_DRIVER
ret nvmlDeviceGetJpgUtilization(dev *d, unsigned *v, unsigned *period_us) { ENTER(d); *v = g->jpeg_percent; *period_us = 167000; return SUCCESS; }
ret nvmlDeviceGetOfaUtilization(dev *d, unsigned *v, unsigned *period_us) { ENTER(d); *v = g->optical_flow_percent; *period_us = 167000; return SUCCESS; }
#endif

ret nvmlDeviceGetTotalEccErrors(dev *d, int uncorrected, int aggregate, unsigned long long *v) {
  ENTER(d);
  if (!g->has_ecc) return NOT_SUPPORTED;
  *v = g->ecc[2 * aggregate + uncorrected];
  return SUCCESS;
}

ret nvmlDeviceGetRemappedRows(dev *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
  ENTER(d);
  if (!g->remaps_rows) return NOT_SUPPORTED;
  *corrected = g->rows_corrected;
  *uncorrected = g->rows_uncorrected;
  *pending = g->rows_pending;
  *failed = g->rows_failed;
  return SUCCESS;
}

struct process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };
static ret list(const struct gpu *g, int kind, unsigned *n, struct process *p) {
  unsigned room = *n;
  *n = 0;
  for (int i = 0; i < g->process_count; i++) {
    int at = i % MAX_PROCESSES, kinds = g->process_kinds[at];
    if (!((kinds ? kinds : 1) & kind)) continue;
    if (*n < room) p[*n] = (struct process){ g->pids[at], g->process_bytes[at], ~0u, ~0u };
    ++*n;
  }
  return room < *n ? INSUFFICIENT_SIZE : SUCCESS;
}
ret nvmlDeviceGetComputeRunningProcesses_v3(dev *d, unsigned *n, struct process *p) {
  ENTER_ANY(d);
  if (!is_instance(d)) return list(g, 1, n, p);
  struct instance *m = instance_of(d);
  unsigned room = *n;
  *n = m->pid != 0;
  if (room < *n) return INSUFFICIENT_SIZE;
  if (*n) *p = (struct process){ m->pid, m->memory_used_bytes, m->gpu_instance, m->compute_instance };
  return SUCCESS;
}
ret nvmlDeviceGetGraphicsRunningProcesses_v3(dev *d, unsigned *n, struct process *p) { ENTER(d); return list(g, 2, n, p); }
ret nvmlDeviceGetMPSComputeRunningProcesses_v3(dev *d, unsigned *n, struct process *p) { ENTER(d); return list(g, 4, n, p); }

struct work { unsigned pid; unsigned long long at_us; unsigned sm, memory, encoder, decoder; };
ret nvmlDeviceGetProcessUtilization(dev *d, struct work *w, unsigned *n, unsigned long long since_us) {
  ENTER(d);
  if (g->mig) return NOT_SUPPORTED;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  unsigned long long now_us = now.tv_sec * 1000000ull + now.tv_nsec / 1000;
  unsigned room = w ? *n : 0;
  *n = 0;
  for (int i = 0; i < g->process_count && now_us > since_us; i++) {
    int at = i % MAX_PROCESSES;
    if (!g->process_sm_percent[at]) continue;
    if (*n < room) w[*n] = (struct work){ g->pids[at], now_us, g->process_sm_percent[at], 0, 0, 0 };
    ++*n;
  }
  if (!*n) return NOT_FOUND;
  return room < *n ? INSUFFICIENT_SIZE : SUCCESS;
}

enum { FIELD_PAGES_SINGLE = 29, FIELD_PAGES_DOUBLE = 30, FIELD_PAGES_PENDING = 31, FIELD_MEMORY_TEMPERATURE = 82,
       FIELD_ENERGY = 83, FIELD_LINK_SPEED_0 = 84, FIELD_LINK_SPEED_5 = 89, FIELD_LINK_COUNT = 91,
       FIELD_LINK_TX = 138, FIELD_LINK_RX = 139, FIELD_POWER_AVERAGE = 185, FIELD_POWER_NOW = 186 };
struct field { uint32_t id, scope; int64_t timestamp_us, latency_us; int type, rc; unsigned long long value; };
ret nvmlDeviceGetFieldValues(dev *d, int n, struct field *fields) {
  ENTER(d);
  int is_slow = 0;
  for (struct field *f = fields; f < fields + n; f++) {
    f->timestamp_us = now_ns() / 1000;
    f->latency_us = 1;
    f->type = 3; /* unsigned long long */
    f->rc = SUCCESS;
    f->value = 0;
    if (f->id == FIELD_ENERGY) f->value = g->energy_mj, is_slow = 1;
    else if (f->id == FIELD_POWER_AVERAGE || f->id == FIELD_POWER_NOW) f->value = g->power_mw, is_slow = 1;
    else if (f->id == FIELD_MEMORY_TEMPERATURE) {
      f->value = g->memory_temperature_celsius, f->type = 1;
      if (!f->value) f->rc = NOT_SUPPORTED;
    } else if (f->id >= FIELD_PAGES_SINGLE && f->id <= FIELD_PAGES_PENDING) {
      f->value = f->id == FIELD_PAGES_SINGLE ? g->pages_single : f->id == FIELD_PAGES_DOUBLE ? g->pages_double : g->pages_pending;
      if (g->remaps_rows) f->rc = NOT_SUPPORTED;
    } else if (!g->nvlinks) f->rc = NOT_SUPPORTED;
    else if (f->id >= FIELD_LINK_SPEED_0 && f->id <= FIELD_LINK_SPEED_5) f->value = 26562;
    else if (f->id == FIELD_LINK_COUNT) f->value = g->nvlinks;
    else if (f->id == FIELD_LINK_TX) f->value = now_ns() / 1000000 * (int64_t)g->gpm[61];
    else if (f->id == FIELD_LINK_RX) f->value = now_ns() / 1000000 * (int64_t)g->gpm[60];
    else f->rc = NOT_SUPPORTED;
  }
  if (is_slow) take_time(find("nvmlDeviceGetTotalEnergyConsumption"), d->index);
  return SUCCESS;
}

/* ---- GPM ------------------------------------------------------------------------------ */
#ifndef OLD_DRIVER

enum { GPM_NVLINK_FIRST = 60, GPM_NVLINK_LAST = 97 };
struct sample { int gpu, instance; int64_t taken_ns; double values[GPM_IDS]; };
struct support { unsigned version, is_supported; };
struct metric { unsigned id; int rc; double value; const char *info[3]; };
struct metrics { unsigned version, count; struct sample *older, *newer; struct metric metrics[]; };

ret nvmlGpmQueryDeviceSupport(dev *d, struct support *s) {
  ENTER(d);
  if (s->version != 1) return VERSION_MISMATCH;
  s->is_supported = g->gpm_supported;
  return SUCCESS;
}

ret nvmlGpmSampleAlloc(struct sample **s) {
  ENTER_SYSTEM();
  *s = calloc(1, sizeof **s);
  __sync_fetch_and_add(&state->gpm_samples, 1);
  return SUCCESS;
}

ret nvmlGpmSampleFree(struct sample *s) {
  ENTER_SYSTEM();
  if (!s) return INVALID_ARGUMENT;
  free(s);
  __sync_fetch_and_sub(&state->gpm_samples, 1);
  return SUCCESS;
}

static __thread int gpm_sampled_in;

static void note_sampler(void) {
  if (gpm_sampled_in == gpm_start) return;
  gpm_sampled_in = gpm_start;
  __sync_fetch_and_add(&gpm_samplers, 1);
}

ret nvmlGpmSampleGet(dev *d, struct sample *s) {
  ENTER(d);
  if (!g->gpm_supported || g->mig) return NOT_SUPPORTED;
  note_sampler();
  s->gpu = d->index;
  s->instance = -1;
  s->taken_ns = now_ns();
  memcpy(s->values, g->gpm, sizeof s->values);
  return SUCCESS;
}

ret nvmlGpmMigSampleGet(dev *d, unsigned gpu_instance, struct sample *s) {
  ENTER(d);
  if (!g->gpm_supported) return NOT_SUPPORTED;
  for (struct instance *m = g->instances; m < g->instances + MAX_INSTANCES; m++)
    if (g->mig && m->present && m->gpu_instance == (int)gpu_instance) {
      note_sampler();
      s->gpu = d->index;
      s->instance = gpu_instance;
      s->taken_ns = now_ns();
      memcpy(s->values, m->gpm, sizeof s->values);
      return SUCCESS;
    }
  return NOT_FOUND;
}

ret nvmlGpmMetricsGet(struct metrics *m) {
  if (!is_running()) return UNINITIALIZED;
  if (m->version != 1) return VERSION_MISMATCH;
  if (!m->older || !m->newer || m->older->gpu != m->newer->gpu || m->older->instance != m->newer->instance) return INVALID_ARGUMENT;
  ret rc = enter_gpu(__func__, devices + m->newer->gpu);
  if (rc) return rc;
  double window_ms = (m->newer->taken_ns - m->older->taken_ns) / 1e6;
  if (window_ms <= 0) return INVALID_ARGUMENT;
  if (!gpm_was_read && gpm_samplers > 1) raise(SIGSEGV);
  /* the first window is read for no value */
  if (gpm_was_read && window_ms < state->shortest_window_ms) state->shortest_window_ms = window_ms;
  gpm_was_read = 1;
  int has_links = state->gpus[m->newer->gpu].nvlinks > 0;
  for (struct metric *each = m->metrics; each < m->metrics + m->count; each++) {
    each->rc = SUCCESS;
    each->value = each->id < GPM_IDS ? m->newer->values[each->id] : 0;
    if (each->id >= GPM_NVLINK_FIRST && each->id <= GPM_NVLINK_LAST && !has_links) each->rc = NOT_SUPPORTED;
    else if (window_ms < 100) each->value = each->id % 2 ? NAN : 0.0;
  }
  return SUCCESS;
}
#endif

/* ---- events ----------------------------------------------------------------------------- */

struct event_set { uint64_t types[MAX_GPUS]; };
struct event_data { dev *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; };

ret nvmlDeviceGetSupportedEventTypes(dev *d, unsigned long long *types) { ENTER(d); *types = g->event_types; return SUCCESS; }

ret nvmlEventSetCreate(struct event_set **set) {
  ENTER_SYSTEM();
  *set = calloc(1, sizeof **set);
  __sync_fetch_and_add(&state->event_sets, 1);
  return SUCCESS;
}

ret nvmlDeviceRegisterEvents(dev *d, unsigned long long types, struct event_set *set) {
  ENTER(d);
  if (types & ~g->event_types) return NOT_SUPPORTED;
  set->types[d->index] |= types;
  return SUCCESS;
}

/* As the driver: sleeps until an event; a GPU that is lost ends each wait at once. */
ret nvmlEventSetWait_v2(struct event_set *set, struct event_data *data, unsigned timeout_ms) {
  ENTER_SYSTEM();
  int64_t begun = now_ns();
  for (;;) {
    for (int i = 0; i < state->gpu_count; i++)
      if (set->types[i] && state->gpus[i].rc) return state->gpus[i].rc;
    while (state->event_next < state->event_count) {
      struct event *e = &state->events[state->event_next++ % MAX_EVENTS];
      if (!(set->types[e->gpu] & e->type)) continue;
      *data = (struct event_data){ devices + e->gpu, e->type, e->data, e->gpu_instance, ~0u };
      return SUCCESS;
    }
    if ((now_ns() - begun) / 1e6 >= timeout_ms) return TIMEOUT;
    struct timespec t = { 0, 5000000 };
    nanosleep(&t, NULL);
  }
}

ret nvmlEventSetFree(struct event_set *set) {
  ENTER_SYSTEM();
  free(set);
  __sync_fetch_and_sub(&state->event_sets, 1);
  return SUCCESS;
}
