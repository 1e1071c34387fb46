/*
 * Base of `new ncclConfig_t()` in Java: zeros are not "unset", and the libraries refuse a zeroed struct for its magic.
 */
#ifndef NCCL4J_INITIALIZED_STRUCT_H_
#define NCCL4J_INITIALIZED_STRUCT_H_

#define NCCL4J_INITIALIZED(type, ...) \
  struct Initialized_##type : type { \
    Initialized_##type() : type(__VA_ARGS__) {} \
    Initialized_##type(const type& value) : type(value) {} \
  };

#endif
