/** The way of a call to NCCL: checks, operations, groups, windows. */
package io.github.nccl4j.internal.submission;
