//! Marks that programs write to memory which they share with the profiler.

mod express_company;
mod express_confined;
mod express_floods;
mod express_marks;
mod express_processes;
mod express_streams;
mod lane_builds;
mod lane_harm;
mod lane_marks;
mod lane_processes;
