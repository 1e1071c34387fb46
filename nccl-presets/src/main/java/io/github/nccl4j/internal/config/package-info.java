/** Fields and native structs of configurations, and settings that some releases of NCCL need. */
package io.github.nccl4j.internal.config;
