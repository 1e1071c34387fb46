/** The cost of one call through the bindings, beside other ways to the same library. */
package io.github.nccl4j.benchmarks;
