/** Native structs of configurations, and known faults of libraries. */
package io.github.nccl4j.internal.config;
