"""Every stored time, and what a jump of the clock does to it. A column that is missing here fails a test.

To add one: does anything wait for it, or is anything refused or counted because of it? If not, it is a record. If a
person chose it, it stays as it is. Otherwise a clock that was ahead strands it: mend it in `clock_jumps.py`, or where
it is read, and say so here.
"""

# Corrected by the leader when the clock was set back, when a term begins, and once more a minute later.
MENDED = {
    "accounts.acts_from": "move_deadlines_ahead",
    "actions.expires_at": "move_deadlines_ahead",
    "actions.started_at": "move_deadlines_ahead",
    "approval_slots.taken_at": "move_deadlines_ahead",
    "auto_replies.replied_at": "move_deadlines_ahead",
    "connector_requests.created_at": "move_deadlines_ahead",
    "connector_requests.expires_at": "move_deadlines_ahead",
    "connector_requests.lease_until": "shorten_other_leases",
    "inbox_queue.accepted_at": "move_deadlines_ahead",
    "inbox_queue.lease_until": "shorten_other_leases",
    "inbox_texts.expires_at": "shorten_other_leases",
    "job_leases.heartbeat_at": "shorten_worker_leases",
    "job_leases.lease_until": "shorten_worker_leases",
    "job_queue.not_before": "end_waits_ahead",
    "job_queue.updated_at": "end_waits_ahead",
    "job_schedules.next_at": "keep_schedules",
    "leaders.lease_until": "lead",
    "model_calls.started_at": "move_deadlines_ahead",
    "outbound_mail.admitted_at": "release_mail_ahead",
    "outbound_mail.asked_at": "release_mail_ahead",
    "outbound_mail.lease_until": "shorten_other_leases",
    "outbound_mail.not_before": "release_mail_ahead",
    "outbound_recipients.not_before": "release_mail_ahead",
    "sender_throttles.started_at": "move_deadlines_ahead",
    "sender_throttles.until": "move_deadlines_ahead",
    "senders.throttled_until": "move_deadlines_ahead",
    "sessions.created_at": "move_deadlines_ahead",
    "sessions.ends_at": "move_deadlines_ahead",
    "sessions.idle_ends_at": "move_deadlines_ahead",
    "sessions.last_seen_at": "move_deadlines_ahead",
    "sessions.previous_until": "move_deadlines_ahead",
    "sessions.proven_at": "move_deadlines_ahead",
    "sessions.rotated_at": "move_deadlines_ahead",
    "suppressions.created_at": "move_deadlines_ahead",
    "suppressions.expires_at": "move_deadlines_ahead",
    "strikes.created_at": "move_deadlines_ahead",
    "sign_in_links.created_at": "move_deadlines_ahead",
    "sign_in_links.expires_at": "move_deadlines_ahead",
}

# Whoever reads it does not believe a time that lies further ahead than it can.
BOUNDED_BY_READERS = {
    "backfill_runs.ingest_due_at": "core.backfill.rate.due_from",
    "backfill_runs.lease_until": "store.backfill_work",
    "backfill_runs.paced_until": "core.backfill.rate.due_from",
    "connectors.last_heartbeat_at": "core.heartbeat.liveness",
    "connectors.last_sent_at": "keep_connector",
    "program_versions.since": "store.installation.program_versions.record_version",
}

# A person, or the other side, chose the moment itself.
CHOSEN = {
    "consents.dies_at",  # Google's word
    "mta_sts_policies.expires_at",  # the destination's word; a change of the policy is noticed by its id
    "tokens.expires_at",
}

# Nothing waits for it: shown, sorted by, counted in figures, or a limit to what is deleted, which is then kept longer.
_RECORDS = """
    model_waits.waits_since outbound_attempts.ended_at outbound_attempts.started_at outbound_mail.leased_at
    sender_hours.first_at sender_hours.first_bad_at
    accounts.created_at accounts.updated_at action_links.created_at actions.approved_at actions.created_at
    actions.executed_at actions.updated_at approval_notices.closed_at approval_notices.sent_at audit.at
    backfill_estimates.created_at backfill_failures.at backfill_jobs.completed_at backfill_jobs.created_at
    backfill_jobs.started_at backfill_jobs.updated_at backfill_mail.accepted_at challenge_keys.created_at
    connector_requests.ended_at connectors.first_seen_at consents.granted_at consents.refreshed_at
    contacts.first_seen_at contacts.last_seen_at credentials.updated_at decision_outcomes.observed_at
    decisions.created_at departures.renewed_at destination_pauses.created_at directions.created_at
    directions.updated_at dkim_keys.created_at envelopes.accepted_at envelopes.observed_at figure_folds.since
    figure_folds.until inbox.accepted_at inbox.ended_at inbox.lease_until inbox.observed_at inbox_ends.ended_at
    ingestion_rules.created_at job_bodies.created_at job_counting.counted_until job_ends.finished_at
    job_ends.not_before job_schedules.last_at job_steps.finished_at job_steps.started_at jobs.created_at
    jobs.finished_at jobs.heartbeat_at jobs.lease_until jobs.not_before jobs.updated_at labels.created_at
    labels.updated_at lost_labels.lost_at mail_servers.given_at messages.created_at messages.deleted_at
    messages.pruned_at messages.sent_at messages.updated_at model_calls.ended_at model_rules.created_at
    model_rules.updated_at outbound_evenness.hour outbound_mail.ended_at outbound_mail.updated_at
    outbound_recipients.complained_at outbound_recipients.leaving_at outbound_recipients.updated_at
    outbound_results.hour outbound_results_days.day outbound_service.hour outbound_service_days.day
    outbound_times.hour outbound_times_days.day passkeys.created_at passkeys.last_used_at pauses.since
    people.created_at people.updated_at proposals.created_at proposals.updated_at protected.created_at
    queue_depths.at receipts.written_at restore_checks.checked_at restore_checks.restored_at restore_checks.since
    restored_sends.sent_at restores.backup_at restores.restored_at retention_approval.approved_at
    retention_runs.ended_at retention_runs.started_at rollup_spans.start rollups.hour rules.created_at
    rules.updated_at schema_migrations.applied_at secret_keys.dropped_at secret_keys.first_used_at
    sender_domains.created_at sender_hours.hour sender_throttles.active_since sender_throttles.ended_at
    senders.counted_from senders.created_at senders.first_accepted_at
    senders.updated_at shadows.since sign_in_links.used_at tenants.created_at
    tenants.updated_at threads.created_at threads.last_message_at threads.updated_at timeline.alive_at
    stored_settings.changed_at
    tokens.created_at tokens.last_used_at tokens.revoked_at used_challenges.expires_at write_probes.written_at
"""
RECORDS = frozenset(_RECORDS.split())

LISTED = {*MENDED, *BOUNDED_BY_READERS, *CHOSEN, *RECORDS}
