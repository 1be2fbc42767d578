//! Which log files the jobs of a run ask for, with fio's names and content.
//!
//! Deliberately not here: writing them; and the lines themselves (`series`, `histogram_log`, `iolog`).

use super::iolog::{Recording, iolog_text};
use super::model::JobResult;
use super::series::{LogFile, kind_content};

/// All files that the jobs ask for; their names are unique. Jobs that name the same file share it: lines of averages
/// follow each other in order of the jobs, as fio appends them, and recorded I/O is merged by time.
#[must_use]
pub fn requested_logs(jobs: &[JobResult]) -> Vec<LogFile> {
    let mut files: Vec<LogFile> = Vec::new();
    for (number, job) in (1_u32..).zip(jobs) {
        let suffix = if job.logs.per_job { format!(".{number}.log") } else { ".log".to_owned() };
        let asked: [(&Option<String>, &[&str]); 3] =
            [(&job.logs.bw, &["bw"]), (&job.logs.iops, &["iops"]), (&job.logs.lat, &["lat", "clat", "slat"])];
        for (prefix, kinds) in asked {
            let Some(prefix) = prefix else { continue };
            let prefix = if prefix.is_empty() { &job.name } else { prefix };
            for kind in kinds {
                append(&mut files, format!("{prefix}_{kind}{suffix}"), &kind_content(job, kind));
            }
        }
        if let Some(prefix) = &job.logs.hist {
            let prefix = if prefix.is_empty() { &job.name } else { prefix };
            let content = job.histogram_log.as_ref().map(super::HistogramLog::content);
            append(&mut files, format!("{prefix}_clat_hist{suffix}"), &content.unwrap_or_default());
        }
    }
    files.extend(recordings(jobs));
    files
}

fn append(files: &mut Vec<LogFile>, name: String, content: &str) {
    match files.iter_mut().find(|file| file.name == name) {
        Some(file) => file.content.push_str(content),
        None => files.push(LogFile { name, content: content.to_owned() }),
    }
}

fn recordings(jobs: &[JobResult]) -> Vec<LogFile> {
    let mut by_name: Vec<(&str, Vec<&Recording>)> = Vec::new();
    for job in jobs {
        let Some((name, recording)) = job.logs.iolog.as_deref().zip(job.recording.as_ref()) else { continue };
        match by_name.iter_mut().find(|(known, _)| *known == name) {
            Some((_, list)) => list.push(recording),
            None => by_name.push((name, vec![recording])),
        }
    }
    let file =
        |(name, list): (&str, Vec<&Recording>)| LogFile { name: name.to_owned(), content: iolog_text(&list) };
    by_name.into_iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Logs;
    use crate::results::SeriesOptions;
    use ocssd_base::Nanos;

    fn job(name: &str, logs: Logs) -> JobResult {
        let mut job = JobResult::new(name, SeriesOptions::default());
        job.read.record_whole(Nanos(5), 4_096, Nanos(5));
        job.read.finish(Nanos::from_millis(100));
        job.recording = logs.iolog.is_some().then(|| Recording::new(format!("{name}.0.0")));
        job.logs = logs;
        job
    }

    #[test]
    fn names_are_fios_and_unique() {
        let logs = Logs {
            bw: Some("b".into()),
            iops: Some(String::new()),
            lat: Some("l".into()),
            hist: Some("h".into()),
            iolog: Some("io.log".into()),
            ..Logs::default()
        };
        let of = |per_job| {
            let logs = Logs { per_job, ..logs.clone() };
            let files = requested_logs(&[job("x", logs.clone()), job("x", logs)]);
            files.into_iter().map(|file| (file.name, file.content.lines().count())).collect::<Vec<_>>()
        };
        let named: Vec<String> = of(true).into_iter().map(|(name, _)| name).collect();
        let one = [
            "b_bw.1.log",
            "x_iops.1.log",
            "l_lat.1.log",
            "l_clat.1.log",
            "l_slat.1.log",
            "h_clat_hist.1.log",
        ];
        let two = one.map(|name| name.replace(".1.", ".2."));
        assert_eq!(named, [&one.map(str::to_owned)[..], &two[..], &["io.log".to_owned()]].concat());
        let shared = of(false);
        assert_eq!(shared[0], ("b_bw.log".to_owned(), 2));
        assert_eq!(shared.len(), 7);
    }

    #[test]
    fn nothing_asked_is_nothing_written() {
        assert!(requested_logs(&[job("x", Logs::default())]).is_empty());
    }
}
