/**
 * Numbered programs to copy from. Each class has its own {@code main}, which is one rank. A sample needs {@code
 * nccl-platform} alone, runs under any launcher, checks every element, and throws an exception if an element is wrong.
 */
package io.github.nccl4j.samples;
