//! `osint history`: exports a workflow's history to a file that a replay test reads.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::{
    error::CliError,
    temporal::{
        codec::Codec,
        connect::{Target, connect},
        history::export,
    },
};

/// Subcommands of `osint history`.
#[derive(Debug, Subcommand)]
pub(super) enum History {
    /// Write a workflow's history as JSON that the SDK's replayer reads
    Export(Export),
}

/// Arguments of `osint history export`.
#[derive(Debug, Args)]
#[command(after_help = "\
The JSON has the Rust SDK's own form. Its replayer does not read the output of `temporal workflow show -o json`.
Payloads that are encrypted on the server stay encrypted in the file; a replay then needs the key. With --decrypt the file
shows the company that the investigation was about.")]
pub(super) struct Export {
    /// Id of the workflow
    workflow_id: String,
    /// Run of the workflow; without it, the latest
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// File to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Decrypt with the keys in OSINT_CODEC_KEY or OSINT_CODEC_KEY_FILE
    #[arg(long)]
    decrypt: bool,
    #[command(flatten)]
    target: Target,
}

impl History {
    /// Fetches and writes the history.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let Self::Export(Export { workflow_id, run_id, output, decrypt, target }) = self;
        let keys = if decrypt { Some(Codec::from_env()?) } else { None };
        let client = connect(&target).await?;
        let json = export(&client, &workflow_id, run_id, keys.as_ref()).await?;
        let Some(file) = output else {
            return super::print(&String::from_utf8_lossy(&json));
        };
        std::fs::write(&file, json).map_err(|error| CliError::user(format!("cannot write {}: {error}", file.display())))
    }
}
