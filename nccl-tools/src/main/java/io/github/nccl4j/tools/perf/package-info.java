/** {@code nccl4j perf}: measures collectives with the options, tables and result files of nccl-tests. */
package io.github.nccl4j.tools.perf;
