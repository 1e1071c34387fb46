/** Parts of the description of an operation. */
package io.github.nccl4j.internal.operation;
