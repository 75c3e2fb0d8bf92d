/* Calls of NVML that nvitop and gpustat make and warpbook does not, as an H200 on Linux
   answers them. Linked into the stub library for one benchmark; they take no time and
   are not counted. */
#include <string.h>

typedef int ret;
typedef void *dev;
enum { OK = 0, NOT_SUPPORTED = 3 };

typedef struct {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
} pci_info;

ret nvmlDeviceGetPciInfo_v3(dev d, pci_info *info) {
  (void)d;
  memset(info, 0, sizeof *info);
  strcpy(info->bus_id_legacy, "0000:18:00.0");
  strcpy(info->bus_id, "00000000:18:00.0");
  info->bus = 0x18;
  return OK;
}

#define VALUE(name, value)        \
  ret name(dev d, unsigned *to) { \
    (void)d;                      \
    *to = value;                  \
    return OK;                    \
  }
VALUE(nvmlDeviceGetComputeMode, 0)
VALUE(nvmlDeviceGetDisplayActive, 0)
VALUE(nvmlDeviceGetDisplayMode, 0)
VALUE(nvmlDeviceGetPersistenceMode, 1)
VALUE(nvmlDeviceGetPowerManagementLimit, 700000)
VALUE(nvmlDeviceIsMigDeviceHandle, 0)

#define REFUSED(name)           \
  ret name(dev d, void *to) {   \
    (void)d, (void)to;          \
    return NOT_SUPPORTED;       \
  }
REFUSED(nvmlDeviceGetFanSpeed)
REFUSED(nvmlDeviceGetConfComputeMemSizeInfo)

ret nvmlDeviceGetDriverModel_v2(dev d, unsigned *now, unsigned *next) {
  (void)d, (void)now, (void)next;
  return NOT_SUPPORTED;
}
