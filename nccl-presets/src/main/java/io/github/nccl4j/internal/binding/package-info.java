/** Native functions beside those of NCCL: barriers, DLPack, hooks of calls. */
package io.github.nccl4j.internal.binding;
