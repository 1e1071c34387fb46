/** {@code nccl4j perf}: measures collectives as the programs of nccl-tests do, with their options, columns and files. */
package io.github.nccl4j.samples.perf;
