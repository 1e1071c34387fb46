/** Files and text forms of logs and records; calls that are passed to interceptors. */
package io.github.nccl4j.internal.log;
