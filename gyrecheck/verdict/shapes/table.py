"""The questions that are asked of a program, one file each; a new question is a new file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.absent_logprob import absent_logprob
from gyrecheck.verdict.shapes.act_mode import act_mode
from gyrecheck.verdict.shapes.acting_on_trained import acting_on_trained
from gyrecheck.verdict.shapes.after_reset import after_reset
from gyrecheck.verdict.shapes.appended_apart import appended_apart
from gyrecheck.verdict.shapes.callback_trains import callback_trains
from gyrecheck.verdict.shapes.carried_over import carried_over
from gyrecheck.verdict.shapes.cleared_each_call import cleared_each_call
from gyrecheck.verdict.shapes.clip_beside import clip_beside
from gyrecheck.verdict.shapes.clipped_return import clipped_return
from gyrecheck.verdict.shapes.crossing import crossing
from gyrecheck.verdict.shapes.drawn_once import drawn_once
from gyrecheck.verdict.shapes.early_stop import early_stop
from gyrecheck.verdict.shapes.emptied_hook import emptied_hook
from gyrecheck.verdict.shapes.empty_update import empty_update
from gyrecheck.verdict.shapes.evaluation_trains import evaluation_trains
from gyrecheck.verdict.shapes.falls_back_whole import falls_back_whole
from gyrecheck.verdict.shapes.gradient_rhythm import gradient_rhythm
from gyrecheck.verdict.shapes.imports_across import imports_across
from gyrecheck.verdict.shapes.kept_graph import kept_graph
from gyrecheck.verdict.shapes.keyed_targets import keyed_targets
from gyrecheck.verdict.shapes.left_behind import left_behind
from gyrecheck.verdict.shapes.left_in_eval import left_in_eval
from gyrecheck.verdict.shapes.limit_unheeded import limit_unheeded
from gyrecheck.verdict.shapes.live_buffer import live_buffer
from gyrecheck.verdict.shapes.logprob_source import logprob_source
from gyrecheck.verdict.shapes.lost_records import lost_records
from gyrecheck.verdict.shapes.made_up_row import made_up_row
from gyrecheck.verdict.shapes.missing_field import missing_field
from gyrecheck.verdict.shapes.never_refreshed import never_refreshed
from gyrecheck.verdict.shapes.never_stepped import never_stepped
from gyrecheck.verdict.shapes.obs_after_step import obs_after_step
from gyrecheck.verdict.shapes.off_beat import off_beat
from gyrecheck.verdict.shapes.optimizer_reach import optimizer_reach
from gyrecheck.verdict.shapes.overcounted import overcounted
from gyrecheck.verdict.shapes.papered_over import papered_over
from gyrecheck.verdict.shapes.passes_inside import passes_inside
from gyrecheck.verdict.shapes.pure_sides import pure_sides
from gyrecheck.verdict.shapes.put_again import put_again
from gyrecheck.verdict.shapes.raised_after_failure import raised_after_failure
from gyrecheck.verdict.shapes.rate_set import rate_set
from gyrecheck.verdict.shapes.record_fields import record_fields
from gyrecheck.verdict.shapes.recorded_forward import recorded_forward
from gyrecheck.verdict.shapes.remade import remade
from gyrecheck.verdict.shapes.remainder_lost import remainder_lost
from gyrecheck.verdict.shapes.reward_before_step import reward_before_step
from gyrecheck.verdict.shapes.same_object import same_object
from gyrecheck.verdict.shapes.same_seed import same_seed
from gyrecheck.verdict.shapes.sampler_log import sampler_log
from gyrecheck.verdict.shapes.schedule import schedule
from gyrecheck.verdict.shapes.schedule_beside import schedule_beside
from gyrecheck.verdict.shapes.shared_model import shared_model
from gyrecheck.verdict.shapes.shared_part import shared_part
from gyrecheck.verdict.shapes.snapshot_once import snapshot_once
from gyrecheck.verdict.shapes.standalone import standalone
from gyrecheck.verdict.shapes.step_order import step_order
from gyrecheck.verdict.shapes.suspect import Suspect
from gyrecheck.verdict.shapes.swallowed import swallowed
from gyrecheck.verdict.shapes.target_gradient import target_gradient
from gyrecheck.verdict.shapes.target_moves import target_moves
from gyrecheck.verdict.shapes.trained_anchor import trained_anchor
from gyrecheck.verdict.shapes.training_env import training_env
from gyrecheck.verdict.shapes.unbounded import unbounded
from gyrecheck.verdict.shapes.unlisted_weights import unlisted_weights
from gyrecheck.verdict.shapes.unrelated_flag import unrelated_flag
from gyrecheck.verdict.shapes.version_apart import version_apart
from gyrecheck.verdict.shapes.version_per_piece import version_per_piece
from gyrecheck.verdict.shapes.version_tag import version_tag
from gyrecheck.verdict.shapes.written_never_read import written_never_read

Shape = Callable[[Program, Layout], Iterable[Suspect]]
SHAPES: tuple[Shape, ...] = (
    standalone,
    pure_sides,
    crossing,
    evaluation_trains,
    callback_trains,
    training_env,
    imports_across,
    recorded_forward,
    act_mode,
    left_in_eval,
    gradient_rhythm,
    step_order,
    clip_beside,
    cleared_each_call,
    carried_over,
    remade,
    optimizer_reach,
    shared_part,
    unlisted_weights,
    emptied_hook,
    never_stepped,
    empty_update,
    target_gradient,
    keyed_targets,
    kept_graph,
    target_moves,
    schedule,
    schedule_beside,
    overcounted,
    rate_set,
    off_beat,
    shared_model,
    acting_on_trained,
    same_object,
    swallowed,
    lost_records,
    appended_apart,
    missing_field,
    record_fields,
    version_tag,
    raised_after_failure,
    version_apart,
    live_buffer,
    logprob_source,
    clipped_return,
    trained_anchor,
    never_refreshed,
    written_never_read,
    left_behind,
    early_stop,
    same_seed,
    version_per_piece,
    unrelated_flag,
    after_reset,
    reward_before_step,
    obs_after_step,
    limit_unheeded,
    put_again,
    papered_over,
    sampler_log,
    absent_logprob,
    unbounded,
    made_up_row,
    falls_back_whole,
    drawn_once,
    passes_inside,
    snapshot_once,
    remainder_lost,
)
