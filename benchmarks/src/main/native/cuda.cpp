/*
 * The calls of CUDA that highlevel makes before its first operation: one device and its context. The other functions exist
 * by name only.
 */
extern "C" {

int cuInit(unsigned) { return 0; }

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = context;
  return 0;
}

int cuCtxGetCurrent(void** context) { return cuDevicePrimaryCtxRetain(context, 0); }
}
