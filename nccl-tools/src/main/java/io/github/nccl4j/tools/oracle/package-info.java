/**
 * The expected results of operations, in plain Java and without a test framework: the element types and the reductions.
 */
package io.github.nccl4j.tools.oracle;
