/** Native functions beside those of NCCL: barriers, DLPack, hooks of calls; files of libraries and their texts. */
package io.github.nccl4j.internal.binding;
