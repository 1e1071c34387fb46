/**
 * Numbered programs to copy from. Each class has its own {@code main}, which is one rank: it needs {@code nccl-platform} alone, runs
 * under any launcher, checks every element, and ends with an exception if one is wrong.
 */
package io.github.nccl4j.samples;
