/**
 * What the samples need around the low-level bindings: rank identity, exchange of the unique id, memory and result checks.
 *
 * <p>This is scaffolding of the samples, not an API: the high-level package of nccl4j takes its place.
 */
package io.github.nccl4j.samples.support;
