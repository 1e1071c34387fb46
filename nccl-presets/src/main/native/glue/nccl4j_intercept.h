/*
 * Reports calls to Java. While interception is on, a function's slot has the address of a wrapper. The wrapper reports
 * the call before and after it, and calls the library's second name of the function, pnccl... Otherwise the slot has
 * the library's own address, and calls do not pass through this file. Part of nccl4j_library.h, before the
 * redirections.
 */
#ifndef NCCL4J_INTERCEPT_H_
#define NCCL4J_INTERCEPT_H_

#include <jni.h>

#include <type_traits>

namespace __attribute__((visibility("hidden"))) nccl4j {

/** The kind of an argument, for Java. */
enum Kind { KIND_OTHER = 0, KIND_COMMUNICATOR = 1, KIND_COUNT = 2, KIND_TYPE = 3, KIND_STREAM = 4 };

/** The Java method that receives the calls. */
struct Interceptor {
  JavaVM* vm;
  jclass hook;
  jmethodID notifyListener;
};

/** NULL while interception is off. Never freed after publication: a call may still use it. */
inline std::atomic<const Interceptor*> interceptor{nullptr};
inline void* intercepted[SLOT_COUNT];

/**
 * Reports a call; `after` is 0 before the call and 1 after it. Calls come from Java, so the thread is attached. The
 * method throws nothing; an exception that is pending nevertheless, for example a stack overflow, belongs to the call.
 */
inline void notifyListener(const Interceptor* to, int slot, int after, const long long* arguments,
    const signed char* kinds, int count, long long result) {
  JNIEnv* env = nullptr;
  if (to->vm->GetEnv((void**)&env, JNI_VERSION_1_6) != JNI_OK || env->ExceptionCheck()) return;
  env->CallStaticVoidMethod(to->hook, to->notifyListener, (jint)slot, (jint)after, (jlong)arguments, (jlong)kinds,
      (jint)count, (jlong)result);
}

template <class A>
constexpr signed char kindOf() {
  if (std::is_same_v<A, ncclComm_t>) return KIND_COMMUNICATOR;
  if (std::is_same_v<A, size_t>) return KIND_COUNT;
  if (std::is_same_v<A, ncclDataType_t>) return KIND_TYPE;
  if (std::is_same_v<A, cudaStream_t>) return KIND_STREAM;
  return KIND_OTHER;
}

template <class A>
long long wordOf(const A& argument) {
  if constexpr (std::is_pointer_v<A>) return (long long)argument;
  else if constexpr (std::is_integral_v<A> || std::is_enum_v<A>) return (long long)argument;
  else return 0;  // a unique id, which is a secret
}

/** Calls a function and reports the call before and after it. */
template <int slot, class R, class... A>
R callAndTell(const Interceptor* to, R (*real)(A...), A... arguments) {
  const long long words[] = {wordOf(arguments)..., 0};
  static constexpr signed char kinds[] = {kindOf<A>()..., KIND_OTHER};
  notifyListener(to, slot, 0, words, kinds, sizeof...(A), 0);
  if constexpr (std::is_void_v<R>) {
    real(arguments...);
    notifyListener(to, slot, 1, words, kinds, sizeof...(A), 0);
  } else {
    R result = real(arguments...);
    // Java takes each result for a code: a text's address or a team's rank is none.
    notifyListener(to, slot, 1, words, kinds, sizeof...(A), std::is_same_v<R, ncclResult_t> ? wordOf(result) : 0);
    return result;
  }
}

template <int slot, class F>
struct Wrapper;

template <int slot, class R, class... A>
struct Wrapper<slot, R (*)(A...)> {
  static R call(A... arguments) {
    const Interceptor* to = interceptor.load(std::memory_order_acquire);
    auto real = (R(*)(A...))intercepted[slot];
    return to ? callAndTell<slot>(to, real, arguments...) : real(arguments...);
  }
};

// ncclAlltoAllv is in the list of functions, but other headers do not declare it. It has three forms under one name:
// each of nccl4j's overloads reports the call, instead of a wrapper in the slot.
#define NCCL4J_WITHOUT_WRAPPER_ncclAlltoAllv 0, 1
#define NCCL4J_WITHOUT_WRAPPER_pncclAlltoAllv 0, 1
#define NCCL4J_SECOND_(first, second, ...) second
#define NCCL4J_SECOND(...) NCCL4J_SECOND_(__VA_ARGS__)
#define NCCL4J_WRAPPER_0(name) (void*)&Wrapper<SLOT_##name, decltype(&::name)>::call,
#define NCCL4J_WRAPPER_1(name) nullptr,
#define NCCL4J_WRAPPER_(without, name) NCCL4J_WRAPPER_##without(name)
#define NCCL4J_WRAPPER(without, name) NCCL4J_WRAPPER_(without, name)

inline void* const wrappers[] = {
#define NCCL4J_FUNCTION(name, release) NCCL4J_WRAPPER(NCCL4J_SECOND(NCCL4J_WITHOUT_WRAPPER_##name, 0, 0), name)
#include "nccl_functions.inc"
#undef NCCL4J_FUNCTION
};

/** True for functions with a wrapper. The second names, pnccl..., have none, since wrappers call them. */
inline bool hasWrapper(int slot) { return functions[slot].name[0] == 'n' && wrappers[slot]; }

/** The address for a slot: that of the function or of its wrapper. The caller holds the library's lock. */
inline void* addressForSlot(int slot, void* address, void* handle) {
  if (!interceptor.load(std::memory_order_relaxed) || !hasWrapper(slot)) return address;
  void* second = dlsym(handle, (std::string("p") + functions[slot].name).c_str());
  intercepted[slot] = second ? second : address;
  return wrappers[slot];
}

/** Reports further calls to the class's `notifyListener`, or stops. The report of a running call is completed. */
inline void intercept(JNIEnv* env, jclass hook, bool on) {
  static const Interceptor* const made = [&] {
    auto* one = new Interceptor{};
    env->GetJavaVM(&one->vm);
    one->hook = (jclass)env->NewGlobalRef(hook);
    one->notifyListener = env->GetStaticMethodID(hook, "notifyListener", "(IIJJIJ)V");
    return one;
  }();
  if (!made->notifyListener) return;  // an exception is pending
  Library& l = library();
  std::lock_guard<std::mutex> guard(l.lock);
  interceptor.store(on ? made : nullptr, std::memory_order_release);
  // Every slot looks up its address again at its next call.
  for (auto& slot : slots) slot.store(nullptr, std::memory_order_release);
}

inline const char* functionName(int slot) { return functions[slot].name; }

}  // namespace nccl4j

#endif
