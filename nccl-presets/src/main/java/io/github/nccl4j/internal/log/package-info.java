/** Files and text forms of logs and records. */
package io.github.nccl4j.internal.log;
