//! CPUs, devices and sensors: states, frequencies, jobs and energy.

mod device_usage;
mod devices;
mod energy_model;
mod power_sweep;
mod power_traces;
mod rails;
mod vm_golden;
