//! The name of the file that fio would use, which the drive stands for: what recorded I/O is about.
//!
//! Source: HOWTO, `directory`, `filename` and `filename_format`. Deliberately not here: any file.

use super::job::Job;

/// fio's default `filename_format`.
const FORMAT: &str = "$jobname.$jobnum.$filenum";

impl Job {
    /// The file of one clone: the first of `filename`, else made by `filename_format`, below its `directory`.
    #[must_use]
    pub fn file_name(&self, clone: u32) -> String {
        let directories = &self.options.files.directories;
        if let Some(name) = self.options.files.names.first() {
            return join(directories.first(), name);
        }
        let format = self.options.files.format.as_deref().unwrap_or(FORMAT);
        let name = format
            .replace("$jobname", &self.name)
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", "0")
            .replace("$clientuid", "");
        let count = u32::try_from(directories.len()).unwrap_or(u32::MAX);
        let nth = clone.checked_rem(count).map_or(0, |nth| usize::try_from(nth).expect("an index"));
        join(directories.get(nth), &name)
    }
}

fn join(directory: Option<&String>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::job::parse_job_file;

    #[test]
    fn names_follow_fios_rules() {
        let cases = [
            ("", ["w.0.0", "w.1.0"]),
            ("directory=/x", ["/x/w.0.0", "/x/w.1.0"]),
            ("directory=/x:/y/", ["/x/w.0.0", "/y/w.1.0"]),
            (
                "directory=/x\nfilename_format=d.$jobname.$jobnum.$filenum$clientuid",
                ["/x/d.w.0.0", "/x/d.w.1.0"],
            ),
            ("directory=/x:/y\nfilename=a:b", ["/x/a", "/x/a"]),
            ("directory=/x\nfilename=/dev/y", ["/x//dev/y", "/x//dev/y"]),
        ];
        for (settings, names) in cases {
            let text = format!("[w]\nnumjobs=2\n{settings}\n");
            let parsed = parse_job_file(&text, "t", &|_| None, &|_| Err(String::new())).expect("a valid job");
            let found = [0, 1].map(|clone| parsed.jobs[0].file_name(clone));
            assert_eq!(found, names, "{settings}");
        }
    }
}
