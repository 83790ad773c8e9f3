//! Jobs of accelerators and GPUs: the fields of `gpu_scheduler` and `dma_fence` events, as printed by the kernel and as the bare
//! fields of a record.
//!
//! ```text
//! dev=fdab0000.npu, fence=21:7, ring=rknn, job count:1, hw job count:0, client_id:4          Linux 6.17 and later
//! name=rknn job_count=1 hw_job_count=0 dev=fdab0000.npu fence_context=21 fence_seqno=7 client_id=4
//! entity=00000000d3ef52d1, id=7, fence=000000001bd6fa4e, ring=rknn, job count:1, hw job count:0      earlier
//! entity=18446613117495742464 fence=18446613117495742528 name=rknn id=7 job_count=1 hw_job_count=0
//! ```

use memchr::memmem;

use super::event_fields::{decimal, hexadecimal, number, text};
use crate::model::devices::event::{DeviceEvent, Fence, JobName, RingName};

/// Parses the fields of `drm_sched_job_queue`, and of `drm_sched_job` before Linux 6.17.
pub(crate) fn queued(fields: &[u8]) -> Option<DeviceEvent<'_>> {
    job(fields).map(DeviceEvent::Queued)
}

/// Parses the fields of `drm_sched_job_run`, and of `drm_run_job` before Linux 6.17.
pub(crate) fn handed_over(fields: &[u8]) -> Option<DeviceEvent<'_>> {
    job(fields).map(DeviceEvent::HandedOver)
}

/// Parses the fields of `drm_sched_job_done`, and of `drm_sched_process_job` before Linux 6.17.
pub(crate) fn done(fields: &[u8]) -> Option<DeviceEvent<'static>> {
    own_fence(fields).map(DeviceEvent::Done)
}

/// Parses the fields of `drm_sched_job_add_dep`.
pub(crate) fn depends(fields: &[u8]) -> Option<DeviceEvent<'static>> {
    let (job, on) = dependency(fields)?;
    Some(DeviceEvent::Depends { job, on })
}

/// Parses the fields of `drm_sched_job_unschedulable`.
pub(crate) fn blocked(fields: &[u8]) -> Option<DeviceEvent<'static>> {
    let (job, on) = dependency(fields)?;
    Some(DeviceEvent::Blocked { job, on })
}

/// Parses the fields of `drm_sched_job_wait_dep`, before Linux 6.17.
pub(crate) fn depends_by_id(fields: &[u8]) -> Option<DeviceEvent<'_>> {
    let context = number(fields, b"context").or_else(|| number(fields, b"ctx"));
    let seqno = number(fields, b"seq").or_else(|| number(fields, b"seqno"));
    Some(DeviceEvent::DependsById {
        ring: ring(fields)?,
        id: number(fields, b"id")?,
        address: own_fence(fields)?,
        number: context.zip(seqno).map(|(context, seqno)| Fence::Number { context, seqno }),
    })
}

/// Parses the fields of `dma_fence_signaled`.
pub(crate) fn signaled(fields: &[u8]) -> Option<DeviceEvent<'static>> {
    let (context, seqno) = (number(fields, b"context")?, number(fields, b"seqno")?);
    Some(DeviceEvent::Signaled(Fence::Number { context, seqno }))
}

fn job(fields: &[u8]) -> Option<JobName<'_>> {
    Some(JobName { ring: ring(fields)?, fence: own_fence(fields)?, id: number(fields, b"id") })
}

fn ring(fields: &[u8]) -> Option<RingName<'_>> {
    let ring = text(fields, b"ring").or_else(|| text(fields, b"name"))?;
    Some(RingName { device: text(fields, b"dev").unwrap_or_default(), ring })
}

fn dependency(fields: &[u8]) -> Option<(Fence, Fence)> {
    const DEPENDS: &[u8] = b"depends on ";
    let job = own_fence(fields)?;
    let on = match memmem::find(fields, DEPENDS) {
        Some(at) => {
            let rest = &fields[at + DEPENDS.len()..];
            own_fence(rest.strip_prefix(b"unsignalled ").unwrap_or(rest))?
        }
        None => Fence::Number { context: number(fields, b"ctx")?, seqno: number(fields, b"seqno")? },
    };
    Some((job, on))
}

/// Parses the first fence of an event.
fn own_fence(fields: &[u8]) -> Option<Fence> {
    let Some(fence) = text(fields, b"fence") else {
        let (context, seqno) = (number(fields, b"fence_context")?, number(fields, b"fence_seqno")?);
        return Some(Fence::Number { context, seqno });
    };
    let word = fence.split(|byte| *byte == b' ').next()?;
    if let Some(colon) = memchr::memchr(b':', word) {
        let (context, seqno) = (decimal(&word[..colon])?, decimal(&word[colon + 1..])?);
        return Some(Fence::Number { context, seqno });
    }
    // The kernel prints an address without a prefix, in 8 or 16 digits. As the bare field of a record it is decimal, and has 10
    // digits or 20, or a sign where it was taken for a signed number.
    let address = match word {
        [b'0', b'x', digits @ ..] => hexadecimal(digits),
        [b'-', ..] => str::from_utf8(word).ok()?.parse().ok().map(i64::cast_unsigned),
        _ if matches!(word.len(), 8 | 16) => hexadecimal(word),
        _ => decimal(word),
    };
    address.map(Fence::Address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NPU: RingName<'static> = RingName { device: b"fdab0000.npu", ring: b"rknn" };
    const SEVEN: Fence = Fence::Number { context: 21, seqno: 7 };

    #[test]
    fn jobs_of_today_are_read_as_text_and_as_fields() {
        let job = JobName { ring: NPU, fence: SEVEN, id: None };
        let texts = [
            "dev=fdab0000.npu, fence=21:7, ring=rknn, job count:1, hw job count:0, client_id:4",
            "name=rknn job_count=1 hw_job_count=0 dev=fdab0000.npu fence_context=21 fence_seqno=7 client_id=4",
            "name=rknn job_count=0x1 (1) hw_job_count=0 dev=fdab0000.npu fence_context=0x15 (21) fence_seqno=0x7 (7) client_id=0x4 (4)",
        ];
        for text in texts {
            assert_eq!(queued(text.as_bytes()), Some(DeviceEvent::Queued(job)), "{text}");
            assert_eq!(handed_over(text.as_bytes()), Some(DeviceEvent::HandedOver(job)), "{text}");
        }
        // Names may have blanks.
        let of_driver = RingName { device: b"0000:00:0b.0", ring: b"ctx 3 rq" };
        let job = JobName { ring: of_driver, ..job };
        for text in [
            "dev=0000:00:0b.0, fence=21:7, ring=ctx 3 rq, job count:1, hw job count:0, client_id:4",
            "name=ctx 3 rq job_count=1 hw_job_count=0 dev=0000:00:0b.0 fence_context=21 fence_seqno=7 client_id=4",
        ] {
            assert_eq!(queued(text.as_bytes()), Some(DeviceEvent::Queued(job)), "{text}");
        }
    }

    #[test]
    fn jobs_of_earlier_kernels_are_known_by_an_address() {
        let ring = RingName { device: b"", ring: b"pp" };
        let job = |address| JobName { ring, fence: Fence::Address(address), id: Some(7) };
        for (text, address) in [
            (
                "entity=00000000d3ef52d1, id=7, fence=000000001bd6fa40, ring=pp, job count:1, hw job count:0",
                0x1bd6_fa40,
            ),
            ("entity=0xffff8880, id=7, fence=0xffff8890, ring=pp, job count:1, hw job count:0", 0xffff_8890),
            ("entity=18446 fence=18447 name=pp id=7 job_count=1 hw_job_count=0", 18_447),
            ("fence=-131391639519232 name=pp id=7", 0xffff_8880_0000_0000),
        ] {
            assert_eq!(queued(text.as_bytes()), Some(DeviceEvent::Queued(job(address))), "{text}");
        }
        let done_at = |address| Some(DeviceEvent::Done(Fence::Address(address)));
        assert_eq!(done(b"fence=0000000000000010 signaled"), done_at(0x10));
        assert_eq!(done(b"fence=10"), done_at(10));
        let on = Fence::Number { context: 5, seqno: 3 };
        let address = Fence::Address(0x1c);
        let depends = Some(DeviceEvent::DependsById { ring, id: 7, address, number: Some(on) });
        let text = b"job ring=pp, id=7, depends fence=000000000000001c, context=5, seq=3";
        assert_eq!(depends_by_id(text), depends);
        assert_eq!(depends_by_id(b"name=pp id=7 fence=28 ctx=5 seqno=3"), depends);
    }

    #[test]
    fn ends_and_dependencies_are_read() {
        let on = Fence::Number { context: 30, seqno: 1 };
        let both = ["fence=21:7 depends on fence=30:1", "fence_context=21 fence_seqno=7 ctx=30 seqno=1"];
        for text in both {
            assert_eq!(depends(text.as_bytes()), Some(DeviceEvent::Depends { job: SEVEN, on }), "{text}");
        }
        let text = b"fence=21:7 depends on unsignalled fence=30:1";
        assert_eq!(blocked(text), Some(DeviceEvent::Blocked { job: SEVEN, on }));
        assert_eq!(done(b"fence=21:7 signaled"), Some(DeviceEvent::Done(SEVEN)));
        assert_eq!(done(b"fence_context=21 fence_seqno=7"), Some(DeviceEvent::Done(SEVEN)));
        let text = b"driver=drm_sched timeline=rknn context=21 seqno=7";
        assert_eq!(signaled(text), Some(DeviceEvent::Signaled(SEVEN)));
    }

    #[test]
    fn damaged_fields_are_no_event() {
        for text in [
            "",
            "fence=",
            "fence=21: signaled",
            "fence=:7 signaled",
            "fence=(____ptrval____) signaled",
            "fence=-",
            "fence_context=21",
            "fence=99999999999999999999999",
        ] {
            assert_eq!(done(text.as_bytes()), None, "{text}");
        }
        for text in ["fence=21:7", "ring=rknn", "dev=x, fence=21:x, ring=rknn, job count:1"] {
            assert_eq!(queued(text.as_bytes()), None, "{text}");
        }
        for text in
            ["fence=21:7 depends on fence=", "fence=21:7 depends", "fence_context=21 fence_seqno=7 ctx=30"]
        {
            assert_eq!(depends(text.as_bytes()), None, "{text}");
        }
    }
}
