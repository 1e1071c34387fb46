/** Calls of NCCL as Micrometer's meters. */
package io.github.nccl4j.micrometer;
