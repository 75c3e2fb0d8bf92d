/* CUDA's driver and CUPTI as far as stalls are sampled, with one device and context.

   STUB_FAULT names a call and the result that it gives: "PCSamplingEnable=35".
   What is enabled and disabled is written to standard error. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { size_t size; void *priv; void *context; } Parameters;
typedef struct { Parameters first; size_t *count; } Count;
typedef struct { Parameters first; size_t count; uint32_t *numbers; char **names; } Names;
typedef struct { uint32_t reason, samples; } Reason;
typedef struct {
  size_t size; uint64_t crc, offset; uint32_t index, pad; char *name;
  size_t count; Reason *reasons; uint32_t launch;
} Record;
typedef struct {
  size_t size, room; uint64_t total, dropped; size_t count, remaining;
  uint64_t range; Record *records; uint64_t others; uint8_t is_full;
} Samples;
typedef struct { Parameters first; Samples *samples; } Data;
typedef struct { size_t size, length; void *cubin; uint64_t crc; } Crc;

static const char *REASONS[] = {
  "smsp__pcsamp_warps_issue_stalled_barrier",
  "smsp__pcsamp_warps_issue_stalled_barrier_not_issued",
};
static int is_sampled;

static int fault(const char *name) {
  const char *fault = getenv("STUB_FAULT");
  size_t length = strlen(name);
  if (!fault || strncmp(fault, name, length) || fault[length] != '=') return 0;
  return atoi(fault + length + 1);
}

int cuptiPCSamplingEnable(Parameters *p) {
  (void)p;
  if (fault("Interrupted")) raise(SIGINT);
  if (!fault("PCSamplingEnable")) fprintf(stderr, "enabled\n"), is_sampled = 0;
  return fault("PCSamplingEnable");
}
int cuptiPCSamplingDisable(Parameters *p) {
  (void)p;
  fprintf(stderr, "disabled\n");
  return fault("PCSamplingDisable");
}
int cuptiPCSamplingGetNumStallReasons(Count *p) { *p->count = 2; return 0; }
int cuptiPCSamplingGetStallReasons(Names *p) {
  for (size_t at = 0; at < p->count; at++) {
    p->numbers[at] = (uint32_t)at + 1;
    strcpy(p->names[at], REASONS[at]);
  }
  return 0;
}
int cuptiPCSamplingSetConfigurationAttribute(Parameters *p) {
  (void)p;
  return fault("PCSamplingSetConfigurationAttribute");
}
int cuptiPCSamplingGetData(Data *p) {
  Samples *samples = p->samples;
  samples->count = samples->remaining = samples->dropped = 0;
  if (is_sampled++) return fault("PCSamplingGetData");
  Record *record = samples->records;
  record->crc = 7, record->offset = 16, record->name = "kernel", record->launch = 1;
  record->count = 2;
  record->reasons[0] = (Reason){1, 5}, record->reasons[1] = (Reason){2, 3};
  samples->count = 1;
  return fault("PCSamplingGetData");
}
int cuptiGetCubinCrc(Crc *p) { p->crc = 7; return fault("GetCubinCrc"); }
int cuptiGetVersion(uint32_t *version) { *version = 130000; return 0; }
int cuptiSubscribe(void **subscriber, void *callback, void *data) {
  (void)callback, (void)data;
  *subscriber = &is_sampled;
  return fault("Subscribe");
}
int cuptiUnsubscribe(void *subscriber) { (void)subscriber; return 0; }
int cuptiFinalize(void) { fprintf(stderr, "gone\n"); return 0; }
int cuptiGetResultString(int result, const char **text) {
  (void)result;
  *text = "A_RESULT";
  return 0;
}

int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
  snprintf(name, (size_t)length, "Stub %d", device);
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? (fault("major") ? fault("major") : 9) : 1;
  return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  *flags = (unsigned)device, *active = 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  *context = &is_sampled;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxGetCurrent(void **context) { *context = NULL; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuCtxPushCurrent_v2(void *context) { (void)context; return 0; }
int cuCtxPopCurrent_v2(void **context) { *context = NULL; return 0; }
int cuCtxSynchronize(void) { return fault("CtxSynchronize"); }
int cuGetErrorName(int result, const char **text) {
  (void)result;
  *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
  return 0;
}
