/** Calls of CUDA and its loading; streams, events and memory of devices. */
package io.github.nccl4j.internal.cuda;
