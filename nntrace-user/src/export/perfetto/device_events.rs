//! Events of devices' queues, as the kernel's own tracing would have had them: so the importer draws its tracks of GPUs.

use bytes::Bytes;
use prost::encoding;

use crate::{
    model::devices::event::{DeviceEvent, Fence, JobName},
    perfetto_schema::{device_events, ftrace::EventMessage},
};

/// Value of a field.
enum Value<'a> {
    Number(u64),
    Text(&'a [u8]),
}

/// Returns the number of an event in Perfetto's schema and its message; `None` for one that the schema does not have.
pub(super) fn encoded(event: &DeviceEvent<'_>) -> Option<(u32, Bytes)> {
    let (schema, values) = match *event {
        DeviceEvent::Queued(job) => of_job(job, &device_events::QUEUE, &device_events::QUEUE_BY_ADDRESS),
        DeviceEvent::HandedOver(job) => of_job(job, &device_events::RUN, &device_events::RUN_BY_ADDRESS),
        DeviceEvent::Done(fence @ Fence::Number { .. }) => (&device_events::DONE, of_fence(fence)),
        DeviceEvent::Done(fence @ Fence::Address(_)) => (&device_events::DONE_BY_ADDRESS, of_fence(fence)),
        DeviceEvent::Signaled(Fence::Number { context, seqno }) => (
            &device_events::FENCE_SIGNALED,
            vec![("context", Value::Number(context)), ("seqno", Value::Number(seqno))],
        ),
        DeviceEvent::Depends { job, on } => (&device_events::ADD_DEPENDENCY, of_dependency(job, on)?),
        DeviceEvent::Blocked { job, on } => (&device_events::UNSCHEDULABLE, of_dependency(job, on)?),
        DeviceEvent::Signaled(Fence::Address(_)) | DeviceEvent::DependsById { .. } => return None,
    };
    let mut message = Vec::new();
    for (number, name) in schema.fields {
        match values.iter().find(|(of, _)| of == name) {
            Some((_, Value::Number(value))) => encoding::uint64::encode(*number, value, &mut message),
            Some((_, Value::Text(text))) => encoding::bytes::encode(*number, &text.to_vec(), &mut message),
            None => {}
        }
    }
    Some((schema.number, message.into()))
}

type Values<'a> = Vec<(&'static str, Value<'a>)>;

fn of_job<'a>(
    job: JobName<'a>,
    by_number: &'static EventMessage,
    by_address: &'static EventMessage,
) -> (&'static EventMessage, Values<'a>) {
    let mut values = of_fence(job.fence);
    values.push(("name", Value::Text(job.ring.ring)));
    if !job.ring.device.is_empty() {
        values.push(("dev", Value::Text(job.ring.device)));
    }
    values.extend(job.id.map(|id| ("id", Value::Number(id))));
    (if matches!(job.fence, Fence::Number { .. }) { by_number } else { by_address }, values)
}

fn of_fence<'a>(fence: Fence) -> Values<'a> {
    match fence {
        Fence::Number { context, seqno } => {
            vec![("fence_context", Value::Number(context)), ("fence_seqno", Value::Number(seqno))]
        }
        Fence::Address(address) => vec![("fence", Value::Number(address))],
    }
}

fn of_dependency<'a>(job: Fence, on: Fence) -> Option<Values<'a>> {
    let (Fence::Number { .. }, Fence::Number { context, seqno }) = (job, on) else { return None };
    let mut values = of_fence(job);
    values.extend([("ctx", Value::Number(context)), ("seqno", Value::Number(seqno))]);
    Some(values)
}
