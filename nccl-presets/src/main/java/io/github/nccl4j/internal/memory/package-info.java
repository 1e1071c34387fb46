/** Native memory, addresses and their bounds, and the lifetime of objects that own them. */
package io.github.nccl4j.internal.memory;
