// Generated from extension/warpbook/*protocol.py. Do not edit.

export const PROTOCOL_VERSION = 1;

/** Why the server closed a stream, in the range that RFC 6455 leaves free. */
export const CloseCode = {
  PROTOCOL_VERSION: 4001,
  GARBAGE: 4002,
  TOO_MANY_VIEWERS: 4003
} as const;

export type State =
  'lost' | 'no_permission' | 'not_supported' | 'ok' | 'stale' | 'unavailable';

export type AbsenceReason =
  | 'driver_not_loaded'
  | 'lost'
  | 'no_device'
  | 'no_library'
  | 'no_permission'
  | 'not_installed'
  | 'not_supported'
  | 'unknown'
  | 'version_mismatch';

export type Unit =
  | 'bytes'
  | 'bytes_per_s'
  | 'celsius'
  | 'count'
  | 'flags'
  | 'hz'
  | 'joules'
  | 'mhz'
  | 'ms'
  | 'ratio'
  | 'watts';

export type DeviceKind = 'gpu' | 'host' | 'mig' | 'monitor';

export type Severity = 'fault' | 'normal' | 'warning';

export type CardStatus =
  'error' | 'failed' | 'passed' | 'timed out' | 'undecided' | 'unsupported';

export type VerdictKind =
  | 'communication-bound'
  | 'compute-bound'
  | 'few-multiprocessors'
  | 'host-bound'
  | 'idle'
  | 'input-bound'
  | 'launch-bound'
  | 'memory-bound'
  | 'mixed'
  | 'operator-bound'
  | 'overhead-bound'
  | 'python-bound'
  | 'sync-bound'
  | 'thread-bound'
  | 'transfer-bound'
  | 'unknown'
  | 'wait-bound';

export type ChecklistAnswer = 'no' | 'not applicable' | 'unknown' | 'yes';

export type Cell =
  | BytesCell
  | CodeCell
  | DurationCell
  | LocationCell
  | NumberCell
  | RateCell
  | RatioCell
  | StatusCell
  | TextCell;

export type Part =
  CardFacts | CardLog | CardTable | CardText | CardTimeline | LocationCell;

/** Something a person may expect here and that is not there, and why. */
export interface Absence {
  readonly what: string;
  readonly reason: AbsenceReason;
  readonly message: string;
  readonly remedy: string;
}

/** How it stands on this page with what an assistant asked for. */
export interface ActAnswer {
  readonly type: 'act_answer';
  readonly id: string;
  readonly state: 'allowed' | 'done' | 'failed' | 'refused' | 'shown';
  readonly is_applied?: boolean;
  readonly report?: string | null;
  readonly words?: string;
}

/**
 * Nobody waits for an answer to a request any more: it was given, or is late.
 */
export interface ActClosed {
  readonly type: 'act_closed';
  readonly id: string;
}

/**
 * An assistant asks for something; the page that can do it asks the person.
 * Sent to every page, and to a new one while nobody answered.
 */
export interface ActRequest {
  readonly type: 'act_request';
  readonly id: string;
  readonly act:
    'apply_change' | 'lab_check' | 'lab_submit' | 'profile_cell' | 'try_change';
  readonly assistant: string;
  readonly kernel_id: string;
  readonly cell_id: string | null;
  readonly change: string;
  readonly lab: string;
  readonly source: string;
}

/** A rule that holds, or held until lately. */
export interface Alert {
  readonly id: string;
  readonly rule: string;
  readonly severity: Severity;
  readonly device: string | null;
  readonly title: string;
  readonly text: string;
  readonly since_ms: number;
  readonly until_ms: number | null;
  readonly kernel_id: string | null;
  readonly is_replay: boolean;
}

/** One rule as it holds, with all that may be set of it. */
export interface AlertRule {
  readonly name: string;
  readonly is_own: boolean;
  readonly settings: Record<string, boolean | number | string | null>;
  readonly written: string[];
}

/** Body of `POST api/v1/alerts/rules`. */
export interface AlertRuleChange {
  readonly version: string;
  readonly name: string;
  readonly is_own: boolean;
  readonly settings: Record<string, boolean | number | string | null> | null;
}

/** Answer of `GET` and `POST api/v1/alerts/rules`. */
export interface AlertRules {
  readonly file: string;
  readonly version: string;
  readonly problem: string;
  readonly rules: AlertRule[];
}

/**
 * All alerts that hold or ended lately; after each hello and when one changes.
 * Sent to every connected page, also one that is hidden and takes no frames.
 */
export interface Alerts {
  readonly type: 'alerts';
  readonly time_ms: number;
  readonly alerts: Alert[];
}

/** What torch's caching allocator counted in a kernel, over one cell. */
export interface Allocator {
  readonly index: number;
  readonly uuid: string | null;
  readonly allocated_bytes: number;
  readonly reserved_bytes: number;
  readonly peak_allocated_bytes: number;
  readonly retries: number;
}

/** All times of a part of the program that the program names itself. */
export interface AnnotationRow {
  readonly name: string;
  readonly times: number;
  readonly host_ns: number;
  readonly gpu_ns: number | null;
  readonly work: number | null;
}

/** A question of a quiz, as a person sees it. */
export interface AskedQuestion {
  readonly lab: string;
  readonly ask: string;
  readonly code: string;
  readonly choices: string[];
}

/** The window without the profiler's part; the verdict is judged on it. */
export interface BareRun {
  readonly basis: 'estimated' | 'measured';
  readonly time_ns: number;
  readonly low_ns: number;
  readonly high_ns: number;
  readonly limit: 'GPU' | 'between' | 'host';
  readonly gpu_busy_ns: number;
  readonly idle: IdleSplit;
  readonly profiled_ns: number;
  readonly runs: number;
  readonly source: 'executions' | 'first execution' | 'repeats' | null;
  readonly host_share: number | null;
  readonly between: string[];
  readonly cautions: string[];
  readonly sentence: string;
  readonly calibration: string;
}

/** Runs of the same code that were timed without the profiler. */
export interface BareTimes {
  readonly runs: number;
  readonly median_ns: number;
  readonly least_ns: number;
  readonly most_ns: number;
  readonly source: 'executions' | 'first execution' | 'repeats';
}

/** A size in bytes. */
export interface BytesCell {
  readonly type: 'bytes';
  readonly size_bytes: number;
  readonly what: string;
}

/**
 * One call in the tree of who called whom, all calls of equal chains together.
 */
export interface CallNode {
  readonly name: string;
  readonly parent: number;
  readonly calls: number;
  readonly host_ns: number;
  readonly gpu_ns: number | null;
}

/** Answer of `GET <base_url>/warpbook/api/v1/capabilities`. */
export interface Capabilities {
  readonly protocol: number;
  readonly version: string;
  readonly min_rate_hz: number;
  readonly max_rate_hz: number;
  readonly history_seconds: number;
  readonly devices: Device[];
  readonly absences: Absence[];
  readonly replay: Replay | null;
  readonly bokeh: string | null;
  readonly machine: Machine;
}

/** A lab's result, ready to be drawn. */
export interface Card {
  readonly title: string;
  readonly status: CardStatus;
  readonly label: string;
  readonly message: string;
  readonly sections: CardSection[];
}

/** What a lane was busy with for a while. */
export interface CardBar {
  readonly begin_ns: number;
  readonly end_ns: number;
  readonly label: string;
  readonly line: number | null;
  readonly is_waiting: boolean;
}

/** A label with one value or several. */
export interface CardFact {
  readonly label: string;
  readonly cells: Cell[];
}

/** Labels with their values. */
export interface CardFacts {
  readonly type: 'facts';
  readonly facts: CardFact[];
}

/** One engine of a timeline. */
export interface CardLane {
  readonly engine: string;
  readonly name: string;
  readonly bars: CardBar[];
}

/** Lines as a program wrote them. */
export interface CardLog {
  readonly type: 'log';
  readonly lines: string[];
  readonly more: number;
}

/** What belongs together; a section without a title has no heading. */
export interface CardSection {
  readonly title: string;
  readonly parts: Part[];
  readonly fold: '' | 'closed' | 'open';
}

/** Columns with names, and rows of as many cells. */
export interface CardTable {
  readonly type: 'table';
  readonly heads: string[];
  readonly rows: Cell[][];
}

/** A sentence or two. */
export interface CardText {
  readonly type: 'paragraph';
  readonly text: string;
  readonly tone: 'plain' | 'quiet' | 'warning';
}

/** What each engine did when, from 0 on. */
export interface CardTimeline {
  readonly type: 'timeline';
  readonly end_ns: number;
  readonly lanes: CardLane[];
}

/** One cause and what it explains. */
export interface CauseView {
  readonly id: string;
  readonly kind: VerdictKind;
  readonly label: string;
  readonly share: string;
  readonly share_ratio: number;
  readonly evidence: string;
  readonly advice: string;
  readonly lab: string | null;
  readonly changes: string[];
  readonly rows: string[];
}

/** A cell that a page saw run: the body of `POST .../api/v1/cells`. */
export interface CellBand {
  readonly id: string;
  readonly kernel_id: string;
  readonly notebook: string;
  readonly cell_id: string | null;
  readonly execution_count: number | null;
  readonly title: string;
  readonly started_ms: number;
  readonly ended_ms: number | null;
  readonly status: 'error' | 'interrupted' | 'ok' | 'running';
}

/** One run of one cell under the profiler. */
export interface CellProfile {
  readonly verdict: CellVerdict | null;
  readonly findings: Finding[];
  readonly metrics: Metrics | null;
  readonly wall_ns: number;
  readonly profiler_ns: number;
  readonly first_start_ns: number | null;
  readonly gpu_name: string | null;
  readonly gpu_busy_ns: number | null;
  readonly kernel_calls: number | null;
  readonly kernel_time_ns: number | null;
  readonly copy_time_ns: number | null;
  readonly launches: number | null;
  readonly launch_api_ns: number | null;
  readonly synchronizations: number | null;
  readonly synchronization_ns: number | null;
  readonly peak_allocated_bytes: number | null;
  readonly peak_reserved_bytes: number | null;
  readonly kernels: KernelRow[];
  readonly copies: CopyRow[];
  readonly operators: OperatorRow[];
  readonly names: string[];
  readonly lanes: Lane[];
  readonly completeness: Completeness;
  readonly memory: MemoryUse[];
  readonly repeats: Repeats | null;
  readonly paths: PathRow[];
  readonly lines: LineRow[];
  readonly lines_cost_ns: number | null;
  readonly set_up: SetUp | null;
  readonly roofline: RooflinePoint[];
  readonly roofs: Roof[];
  readonly memory_curves: MemoryCurve[];
  readonly bare: BareRun | null;
  readonly trials: Trial[];
  readonly edited: Edited | null;
  readonly changes: Change[];
  readonly call_tree: CallNode[];
  readonly modules: GroupRow[];
  readonly functions: GroupRow[];
  readonly steps: StepRow[];
  readonly cpu: CpuTime | null;
  readonly annotations: AnnotationRow[];
  readonly autograd_nodes: number | null;
  readonly work: Work | null;
  readonly stalls: Stalls | null;
}

/**
 * The profile of one cell, from the kernel that ran it to every open view. Of a
 * trace file the server makes one, for the view that asks: `file` names it, and
 * what belongs to a kernel is empty.
 */
export interface CellReport {
  readonly type: 'cell_report';
  readonly id: string;
  readonly protocol: number;
  readonly kernel_id: string;
  readonly notebook: string | null;
  readonly cell_id: string | null;
  readonly execution_count: number | null;
  readonly title: string;
  readonly started_ms: number;
  readonly ended_ms: number;
  readonly status: 'error' | 'interrupted' | 'ok' | 'running';
  readonly profile: CellProfile;
  readonly gpus: string[];
  readonly notes: string[];
  readonly difference: Comparison | null;
  readonly timeline_events: number | null;
  readonly live: Live | null;
  readonly file: string | null;
  readonly view: ReportView | null;
  readonly checklist: Checklist | null;
}

/** A cell that ran, as its kernel saw it: `POST /v1/cells` of the ingest. */
export interface CellRun {
  readonly id: string;
  readonly protocol: number;
  readonly kernel_id: string;
  readonly notebook: string | null;
  readonly cell_id: string | null;
  readonly execution_count: number | null;
  readonly title: string;
  readonly started_ms: number;
  readonly ended_ms: number;
  readonly status: 'error' | 'interrupted' | 'ok';
  readonly allocators: Allocator[];
}

/** The finding in one sentence. */
export interface CellVerdict {
  readonly kind: VerdictKind;
  readonly sentence: string;
  readonly change: string;
  readonly parts: string[];
  readonly change_at: number | null;
}

/** One change, with the time of the cell after it; names are the program's. */
export interface Change {
  readonly name: string;
  readonly title: string;
  readonly evidence: string;
  readonly basis: 'not below' | 'predicted' | 'unknown';
  readonly time_ns: number | null;
  readonly low_ns: number | null;
  readonly high_ns: number | null;
  readonly speed_low: number | null;
  readonly speed_high: number | null;
  readonly reason: string;
  readonly sentence: string;
  readonly operator: string | null;
  readonly line: number | null;
  readonly code: string;
  readonly diff: string;
  readonly lab: string | null;
  readonly parts: string[];
  readonly slices: string[];
}

/** One change to make. */
export interface ChangeView {
  readonly id: string;
  readonly name: string;
  readonly heading: string;
  readonly sentence: string;
  readonly evidence: string;
  readonly diff: string;
  readonly lab: string | null;
  readonly acts_on: string;
  readonly causes: string[];
  readonly rows: string[];
}

/** All items in the order in which they are gone through. */
export interface Checklist {
  readonly lines: Line[];
  readonly summary: string;
  readonly warnings: string[];
}

/** Questions that follow one another and have the same evidence. */
export interface ChecklistEntry {
  readonly items: ChecklistItem[];
  readonly evidence: string;
  readonly advice: string;
}

/** All questions with one answer; there is at least one. */
export interface ChecklistGroup {
  readonly answer: ChecklistAnswer;
  readonly title: string;
  readonly entries: ChecklistEntry[];
}

/** One question. */
export interface ChecklistItem {
  readonly name: string;
  readonly question: string;
  readonly lab: string | null;
}

/** A checklist, grouped. */
export interface ChecklistView {
  readonly summary: string;
  readonly warnings: string[];
  readonly groups: ChecklistGroup[];
}

/** What the server's history says of a GPU while a code ran. */
export interface Clocks {
  readonly sm_clock_mhz: number | null;
  readonly temperature_celsius: number | null;
  readonly slowed_by: string[];
  readonly is_throttled: boolean;
}

/** A name of the source. */
export interface CodeCell {
  readonly type: 'code';
  readonly code: string;
}

/** All calls of one collective of so many ranks, as this rank recorded them. */
export interface CollectiveTotal {
  readonly name: string;
  readonly ranks: number;
  readonly calls: number;
  readonly time_ns: number;
  readonly size_bytes: number | null;
  readonly bus_bytes: number | null;
}

/** Two profiles, in the order that a person chose. */
export interface Comparison {
  readonly verdict:
    'about the same' | 'less time' | 'more time' | 'not comparable' | 'unknown';
  readonly sentence: string;
  readonly likeness: Likeness;
  readonly notes: string[];
  readonly cautions: string[];
  readonly time: Time | null;
  readonly causes: Pair[];
  readonly paths: Pair[];
  readonly kernels: Pair[];
  readonly operators: Pair[];
  readonly explained: [TimePart[], TimePart[]];
  readonly clocks: [Clocks | null, Clocks | null];
  readonly bars: TimeBar[];
  readonly tables: ReportTable[];
}

/** How much of what the cell did is in the trace. */
export interface Completeness {
  readonly launches: number;
  readonly matched: number;
  readonly lanes_omitted: number;
  readonly warnings: string[];
  readonly corrupt: number;
  readonly profiler_ns: number;
  readonly refusal: string;
  readonly linked_by: string;
}

/** Something about a GPU that held for a part of the last minute. */
export interface Condition {
  readonly name: string;
  readonly severity: Severity;
  readonly share_ratio: number;
  readonly sentence: string;
}

/** All copies of one kind, such as "HtoD (Pinned -> Device)"; memsets too. */
export interface CopyRow {
  readonly kind: string;
  readonly calls: number;
  readonly size_bytes: number | null;
  readonly time_ns: number;
  readonly parts: string[];
}

/** All copies of one direction between two kinds of memory. */
export interface CopyTotal {
  readonly direction: string;
  readonly host_memory: string;
  readonly calls: number;
  readonly time_ns: number;
  readonly size_bytes: number | null;
  readonly gb_per_s: number | null;
}

/** A lab that a course has published, as the person of this server sees it. */
export interface CourseLab {
  readonly lab: string;
  readonly title: string;
  readonly url: string;
  readonly is_open: boolean;
  readonly due_ms: number | null;
  readonly mark: string;
  readonly points: number | null;
  readonly most_points: number;
  readonly attempts: number;
  readonly attempts_left: number | null;
}

/** Answer of `GET .../api/v1/courses`: what the hub's courses publish. */
export interface CourseList {
  readonly courses: OwnCourse[];
  readonly next_lab: string | null;
  readonly problem: string;
}

/** Where the time of the thread that ran the code went; the parts sum to it. */
export interface CpuTime {
  readonly window_ns: number;
  readonly loading_ns: number;
  readonly operators_ns: number;
  readonly small_calls_ns: number;
  readonly python_ns: number;
  readonly waiting_ns: number | null;
  readonly lost_ns: number;
  readonly communication_ns: number;
  readonly calls: number;
  readonly small_calls: number;
  readonly use: CpuUse | null;
  readonly bare: BareTimes | null;
}

/** What the operating system counted of one run; times are in ns. */
export interface CpuUse {
  readonly wall_ns: number;
  readonly thread_ns: number;
  readonly process_ns: number;
  readonly queued_ns: number | null;
  readonly threads: number;
  readonly cores: number;
}

/**
 * Answer of `GET .../api/v1/history/detail`: one device, as many steps as
 * asked.
 */
export interface Detail {
  readonly device: string;
  readonly from_ms: number;
  readonly step_ms: number;
  readonly columns: Record<string, DetailColumn>;
}

/** One metric in equal steps; None where a step has no reading. */
export interface DetailColumn {
  readonly least: (number | null)[];
  readonly mean: (number | null)[];
  readonly most: (number | null)[];
}

/** Something that is read: a GPU, the host, or warpbook's own monitor. */
export interface Device {
  readonly id: string;
  readonly kind: DeviceKind;
  readonly name: string;
  readonly index: number | null;
  readonly origin: 'live' | 'replay';
  readonly metrics: Metric[];
  readonly facts: Record<string, string | number>;
}

/** All who hold memory of one GPU, most first. */
export interface DeviceHolders {
  readonly holders: Holder[];
  readonly unattributed_bytes: number | null;
  readonly notes: string[];
}

/** One GPU over one cell. The figures are the whole device's. */
export interface DeviceReceipt {
  readonly span: DeviceSpan;
  readonly shared: boolean | null;
  readonly notes: string[];
  readonly verdict: Verdict | null;
}

/** One GPU of a receipt, as it is shown. */
export interface DeviceReceiptView {
  readonly name: string;
  readonly table: ReportTable | null;
  readonly conditions: Condition[];
  readonly notes: string[];
}

/** One device over a span. */
export interface DeviceSpan {
  readonly device: string;
  readonly metrics: Record<string, MetricSpan>;
  readonly energy_joules: number | null;
  readonly energy_basis: 'counter' | 'power' | null;
  readonly conditions: Condition[];
}

/**
 * The descriptions changed; devices that are new come last, so positions hold.
 */
export interface Devices {
  readonly type: 'devices';
  readonly time_ms: number;
  readonly devices: Device[];
  readonly absences: Absence[];
}

/** What was called so many times in the one run, and so many in the other. */
export interface Difference {
  readonly kind: 'GPU work' | 'operator';
  readonly name: string;
  readonly sizes: string;
  readonly dtypes: string;
  readonly before_calls: number;
  readonly after_calls: number;
}

/** A time in nanoseconds. */
export interface DurationCell {
  readonly type: 'duration';
  readonly duration_ns: number;
}

/**
 * The cell with changes made to its source, as trials beside it measured them.
 */
export interface Edited {
  readonly sentence: string;
  readonly changes: string[];
  readonly speed: Interval | null;
  readonly code: string;
  readonly diff: string;
  readonly once: string;
}

/** The cell with changes made to its source. */
export interface EditedView {
  readonly sentence: string;
  readonly diff: string;
  readonly table: ReportTable | null;
  readonly can_be_placed: boolean;
}

/** The last client message was refused; the stream goes on. */
export interface Error {
  readonly type: 'error';
  readonly code: 'devices' | 'garbage' | 'protocol_version' | 'rate' | 'since';
  readonly message: string;
}

/** Something that a GPU told by itself: an XID error, an ECC error. */
export interface Event {
  readonly type: 'event';
  readonly time_ms: number;
  readonly device: string;
  readonly kind:
    'ecc_double_bit' | 'ecc_single_bit' | 'page_retirement' | 'xid';
  readonly code: number | null;
  readonly severity: Severity;
  readonly title: string;
  readonly meaning: string;
  readonly remedy: string;
}

/**
 * What is known about an event beside name and time; None and empty is unknown.
 */
export interface EventFacts {
  readonly grid: [number, number, number] | null;
  readonly block: [number, number, number] | null;
  readonly registers_per_thread: number | null;
  readonly shared_memory_bytes: number | null;
  readonly occupancy_ratio: number | null;
  readonly size_bytes: number | null;
  readonly dims: number[][];
  readonly dtypes: string[];
}

/** Figures that belong together. */
export interface FigureGroup {
  readonly title: string;
  readonly figures: LabelledFigure[];
}

/** One cause. */
export interface Finding {
  readonly kind: VerdictKind;
  readonly explains_ns: number;
  readonly share: number;
  readonly evidence: string;
  readonly change: string;
  readonly bound_ns: number | null;
  readonly topic:
    | 'attention'
    | 'communication'
    | 'copy-overlap'
    | 'fp8'
    | 'graphs'
    | 'host-waits'
    | 'int8'
    | 'memory-traffic'
    | 'pinned-memory'
    | 'tensor-cores'
    | 'zero-copy'
    | null;
  readonly part: string;
  readonly is_far: boolean;
}

/** All devices at one tick of the sampler's clock. */
export interface Frame {
  readonly type: 'frame';
  readonly seq: number;
  readonly time_ms: number;
  readonly readings: Reading[];
  readonly label: string | null;
}

/** Frames that will never come: nobody watched, or the reader was too slow. */
export interface Gap {
  readonly type: 'gap';
  readonly from_ms: number;
  readonly to_ms: number;
  readonly reason: 'expired' | 'not_watched' | 'restarted' | 'slow_reader';
  readonly message: string;
}

/**
 * All that was called within a module or a function, but not in one within it.
 */
export interface GroupRow {
  readonly name: string;
  readonly calls: number;
  readonly host_ns: number;
  readonly gpu_ns: number | null;
}

/** The verdict: what to read before everything else. */
export interface Headline {
  readonly kind: VerdictKind;
  readonly label: string;
  readonly cause: string;
  readonly change: string;
  readonly causes: string[];
  readonly change_id: string | null;
}

/** What slowed each GPU over the last minute; comes once a second. */
export interface Health {
  readonly type: 'health';
  readonly time_ms: number;
  readonly window_s: number;
  readonly conditions: Record<string, Condition[]>;
}

/** The first message of a stream and the first line of a recording. */
export interface Hello {
  readonly type: 'hello';
  readonly protocol: number;
  readonly version: string;
  readonly time_ms: number;
  readonly rate_hz: number;
  readonly devices: Device[];
  readonly absences: Absence[];
  readonly replay: Replay | null;
}

/**
 * One who holds memory: a kernel, another program, or all other users'
 * together.
 */
export interface Holder {
  readonly kind: 'kernel' | 'other_users' | 'program';
  readonly name: string;
  readonly used_bytes: number | null;
  readonly pids: number[];
  readonly kernel_id: string | null;
  readonly user: string | null;
  readonly execution_state: string | null;
  readonly idle_s: number | null;
  readonly allocated_bytes: number | null;
  readonly reserved_bytes: number | null;
}

/** Who holds the memory of each GPU; comes every few seconds. */
export interface Holders {
  readonly type: 'holders';
  readonly time_ms: number;
  readonly devices: Record<string, DeviceHolders>;
}

/** Where the host was while the GPU waited for it, and it for nothing. */
export interface IdlePlace {
  readonly cause: 'launching' | 'other';
  readonly operator: string | null;
  readonly line: number | null;
  readonly time_ns: number;
}

/** Why the device was idle; the three sum to window - busy. */
export interface IdleSplit {
  readonly host_wait_ns: number;
  readonly kernel_wait_ns: number;
  readonly other_ns: number;
  readonly profiler_ns: number;
  readonly host_synchronize_ns: number;
  readonly host_launching_ns: number;
  readonly host_operator_ns: number;
  readonly host_api_ns: number;
  readonly host_python_ns: number;
}

/**
 * How many times as fast the changed cell is, from 95 % of such measurements.
 */
export interface Interval {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

/** How the archive stands; sent after each hello and when it changes. */
export interface Keeping {
  readonly type: 'keeping';
  readonly state: 'off' | 'on' | 'other_server' | 'stopped';
  readonly from_ms: number | null;
  readonly size_bytes: number;
  readonly message: string;
}

/** What a record is found by, and what a list shows of it. */
export interface KeptRecord {
  readonly kind: 'alert' | 'cell' | 'post_mortem' | 'receipt' | 'report';
  readonly id: string;
  readonly started_ms: number;
  readonly ended_ms: number | null;
  readonly notebook: string | null;
  readonly kernel_id: string | null;
  readonly cell_id: string | null;
  readonly title: string;
  readonly verdict: string | null;
  readonly status: string;
  readonly sentence: string;
  readonly is_replay: boolean;
}

/** All calls of one GPU kernel. */
export interface KernelRow {
  readonly name: string;
  readonly calls: number;
  readonly time_ns: number;
  readonly share_ratio: number;
  readonly longest_ns: number | null;
  readonly grid: [number, number, number] | null;
  readonly block: [number, number, number] | null;
  readonly other_shapes: number;
  readonly occupancy: number | null;
  readonly of_roof: number | null;
  readonly parts: string[];
  readonly lines: string;
}

/** All samples of one kernel. */
export interface KernelStalls {
  readonly name: string;
  readonly launches: number;
  readonly samples: number;
  readonly reasons: Record<string, number>;
  readonly lines: LineStalls[];
  readonly unattributed: number;
  readonly language: '' | 'cuda' | 'inductor' | 'triton';
  readonly origins: Place[];
}

/** Where the warps of one kernel waited. */
export interface KernelStallsView {
  readonly id: string;
  readonly name: string;
  readonly sentence: string;
  readonly reasons: StallReasonView[];
  readonly sources: ReportTable[];
  readonly notes: string[];
  readonly rows: string[];
}

/**
 * All kernels with the same limit, as near to it; communication is left out.
 */
export interface KernelWork {
  readonly bound: string;
  readonly time_ns: number;
  readonly kernels: number;
  readonly of_ceiling: number | null;
  readonly of_measured: number | null;
  readonly multiprocessors: number | null;
  readonly multiprocessors_used: number | null;
  readonly kinds: number | null;
  readonly far:
    | 'few blocks'
    | 'few warps'
    | 'last round'
    | 'short'
    | 'untold'
    | 'arithmetic'
    | 'barriers'
    | 'device memory'
    | 'issue'
    | 'latency'
    | 'shared memory'
    | null;
  readonly sampled: number;
}

/** Answer of `GET .../api/v1/labs/LAB/cards`: the newest first. */
export interface LabCards {
  readonly lab: string;
  readonly cards: LabMark[];
  readonly newest: Card | null;
}

/** One lab in the list. */
export interface LabEntry {
  readonly id: string;
  readonly number: number;
  readonly title: string;
  readonly track: string;
  readonly language: string;
  readonly minutes: number;
  readonly difficulty: string | null;
  readonly goal: string;
  readonly after: string[];
  readonly needs: string[];
  readonly can_check: boolean;
  readonly why: string;
  readonly progress: SoFar | null;
}

/** Answer of `GET` and `POST .../api/v1/labs/LAB/hints`. */
export interface LabHints {
  readonly lab: string;
  readonly of: number;
  readonly hints: string[];
}

/**
 * Answer of `GET .../api/v1/labs`: all labs, and what is here to check them.
 */
export interface LabList {
  readonly labs: LabEntry[];
  readonly compiler: string | null;
  readonly gpus: number;
  readonly notice: string;
  readonly next_lab: string | null;
  readonly problems: string[];
  readonly texts: TextEntry[];
}

/** How one submission went, in short. */
export interface LabMark {
  readonly submission: number;
  readonly number: number;
  readonly graded_ms: number;
  readonly passed: boolean;
  readonly right: number;
  readonly of: number;
  readonly status: string;
  readonly message: string;
  readonly first_failure: string;
}

/** What often goes wrong in a lab. */
export interface LabMistake {
  readonly name: string;
  readonly reason: string;
}

/** Answer of `POST .../api/v1/labs/LAB/open`, of a lab or a text. */
export interface LabOpened {
  readonly lab: string;
  readonly path: string;
}

/** Answer of `GET .../api/v1/labs/LAB/solution`: the reference, discussed. */
export interface LabSolution {
  readonly lab: string;
  readonly file: string;
  readonly reference: string;
  readonly discussion: string;
  readonly mistakes: LabMistake[];
}

/** A value with its label. */
export interface LabelledFigure {
  readonly label: string;
  readonly value: string;
}

/** One row of the timeline: a stream of a GPU, or what a host thread called. */
export interface Lane {
  readonly label: string;
  readonly starts_ns: number[];
  readonly durations_ns: number[];
  readonly names: number[];
}

/**
 * Sums over all matched launches, in ns; medians of those that they concern.
 */
export interface LaunchTimes {
  readonly cost_ns: number;
  readonly cost_median_ns: number | null;
  readonly latency_ns: number;
  readonly latency_median_ns: number | null;
  readonly queue_delay_ns: number;
  readonly queue_delay_median_ns: number | null;
  readonly step_ns: number;
  readonly early: number;
}

/** How far two runs did the same work. */
export interface Likeness {
  readonly score: number | null;
  readonly least_score: number;
  readonly parts: LikenessPart[];
  readonly differing: Difference[];
}

/** One thing that is the same in both runs, or not. */
export interface LikenessPart {
  readonly name: string;
  readonly score: number | null;
  readonly before: string;
  readonly after: string;
}

/** One item of the checklist with its answer. */
export interface Line {
  readonly name: string;
  readonly part: 'any work' | 'inference' | 'training';
  readonly question: string;
  readonly answer: ChecklistAnswer;
  readonly evidence: string;
  readonly advice: string;
  readonly lab: string | null;
}

/**
 * One line of the cell's source; of the GPU, None where it was not recorded.
 */
export interface LineRow {
  readonly line: number;
  readonly code: string;
  readonly times: number;
  readonly host_ns: number;
  readonly kernels: number | null;
  readonly kernel_ns: number | null;
  readonly copy_ns: number | null;
  readonly wait_ns: number | null;
  readonly idle_ns: number | null;
}

/** All samples of one line of one kernel, with what was inlined there. */
export interface LineStalls {
  readonly file: number;
  readonly line: number;
  readonly samples: number;
  readonly reasons: Record<string, number>;
}

/** A long cell so far. */
export interface Live {
  readonly elapsed_ns: number;
  readonly steps: number;
  readonly steps_by: 'optimizer' | 'warpbook.step()' | null;
  readonly bare: StepTimes | null;
  readonly profiled: StepTimes | null;
  readonly slow_steps: SlowStep[];
  readonly slow_ns: number;
  readonly windows: LiveWindow[];
  readonly verdict: CellVerdict | null;
  readonly overhead_ns: number;
  readonly aim_share: number;
  readonly setup_ns: number | null;
  readonly notes: string[];
}

/** Some steps that ran under the profiler. */
export interface LiveWindow {
  readonly start_ns: number;
  readonly end_ns: number;
  readonly steps: number;
  readonly recorded_ns: number;
  readonly bare_step_ns: number | null;
  readonly gpu_busy_ns: number | null;
  readonly kind: VerdictKind | null;
  readonly sentence: string;
  readonly launches: number;
  readonly matched: number;
  readonly overhead_ns: number;
  readonly merged: number;
}

/** A line of the submission, counted from 1, and what it says. */
export interface LocationCell {
  readonly type: 'location';
  readonly line: number;
  readonly code: string;
  readonly column: number | null;
}

/** A machine, or a container of one. */
export interface Machine {
  readonly id: string;
  readonly name: string;
}

/** What torch's allocator held on one GPU while the code ran. */
export interface MemoryCurve {
  readonly device: number;
  readonly times_ns: number[];
  readonly allocated_bytes: number[];
  readonly reserved_bytes: number[];
  readonly changes: number;
  readonly peak_allocated_bytes: number;
  readonly peak_ns: number;
  readonly peak_path: string;
  readonly peak_line: number | null;
}

/** The memory of one GPU now, and its trend. */
export interface MemoryOutlook {
  readonly used_bytes: number;
  readonly total_bytes: number;
  readonly slope_bytes_per_s: number | null;
  readonly full_in_s: number | null;
  readonly sentence: string;
}

/** One GPU; of other libraries' memory torch knows nothing. */
export interface MemoryUse {
  readonly device: number;
  readonly peak_allocated_bytes: number | null;
  readonly peak_reserved_bytes: number | null;
  readonly allocated_bytes: number;
  readonly allocated_change_bytes: number;
  readonly reserved_bytes: number;
  readonly reserved_change_bytes: number;
  readonly fragmentation_share: number | null;
  readonly retries: number;
  readonly driver_allocations: number;
}

/** One column of a device's readings. */
export interface Metric {
  readonly name: string;
  readonly unit: Unit;
  readonly label: string;
  readonly state: State;
  readonly why: string;
}

/** One metric over a span; None where there was no reading. */
export interface MetricSpan {
  readonly mean: number | null;
  readonly least: number | null;
  readonly most: number | null;
  readonly covered_ratio: number;
}

/** One window of one process. */
export interface Metrics {
  readonly window_ns: number;
  readonly gpu_span_ns: number;
  readonly gpu_busy_ns: number;
  readonly compute_ns: number;
  readonly copy_ns: number;
  readonly communication_ns: number;
  readonly communication_compute_overlap_ns: number;
  readonly copy_compute_overlap_ns: number;
  readonly exposed_communication_ns: number;
  readonly exposed_copy_ns: number;
  readonly idle: IdleSplit;
  readonly streams: StreamIdle[];
  readonly launches: number;
  readonly launch: LaunchTimes;
  readonly kernels: number;
  readonly kernel_time_ns: number;
  readonly tensor_core_ns: number;
  readonly tensor_core_unknown_ns: number;
  readonly tensor_core_share: number | null;
  readonly occupancy_share: number | null;
  readonly synchronizations: number;
  readonly synchronization_ns: number;
  readonly sync_points: SyncTotal[];
  readonly idle_places: IdlePlace[];
  readonly copies: CopyTotal[];
  readonly kernel_work: KernelWork[];
  readonly flops: number | null;
  readonly modelled_bytes: number | null;
  readonly modelled_share: number | null;
  readonly exposed_host_copy_ns: number | null;
  readonly collectives: CollectiveTotal[];
}

/** A whole number of something. */
export interface NumberCell {
  readonly type: 'number';
  readonly value: number;
  readonly unit: string;
}

/** All calls of one operator on the host (torch's `aten::` names). */
export interface OperatorRow {
  readonly name: string;
  readonly calls: number;
  readonly self_ns: number;
}

/** Where the memory of each GPU is heading; comes every few seconds. */
export interface Outlook {
  readonly type: 'outlook';
  readonly time_ms: number;
  readonly window_s: number;
  readonly devices: Record<string, MemoryOutlook>;
}

/** How far the changed cell's results are from the unchanged cell's. */
export interface OutputDifference {
  readonly name: string;
  readonly dtype: string;
  readonly compared: number;
  readonly largest_absolute: number;
  readonly largest_relative: number;
  readonly expected_relative: number;
  readonly unchanged_relative: number;
  readonly differs: boolean;
  readonly mismatch: string | null;
}

/** A course of the person of this server. */
export interface OwnCourse {
  readonly title: string;
  readonly role: string;
  readonly url: string;
  readonly labs: CourseLab[];
}

/** One figure of both profiles; None where one does not have it. */
export interface Pair {
  readonly name: string;
  readonly before_ns: number | null;
  readonly after_ns: number | null;
  readonly before_calls: number | null;
  readonly after_calls: number | null;
}

/** All GPU work that was launched within the same operators. */
export interface PathRow {
  readonly path: string;
  readonly calls: number;
  readonly time_ns: number;
}

/** A line of a file. */
export interface Place {
  readonly file: number;
  readonly line: number;
}

/** A cell ran out of GPU memory: who held what at that moment. */
export interface PostMortem {
  readonly type: 'post_mortem';
  readonly time_ms: number;
  readonly kernel_id: string;
  readonly notebook: string | null;
  readonly cell_id: string | null;
  readonly device: string | null;
  readonly asked_bytes: number | null;
  readonly holders: DeviceHolders | null;
  readonly sentence: string;
}

/**
 * Answer of `GET .../api/v1/quizzes/placement/begin`: the lab to begin with.
 */
export interface QuizBegin {
  readonly lab: string;
  readonly words: string;
}

/**
 * Answer of `GET .../api/v1/quizzes/NAME/mark`: how one question was answered.
 */
export interface QuizMark {
  readonly is_right: boolean;
  readonly words: string;
}

/** Answer of `GET .../api/v1/quizzes/NAME`: what can be asked here. */
export interface QuizSheet {
  readonly title: string;
  readonly questions: AskedQuestion[];
  readonly notice: string;
}

/** Bytes or operations per second. */
export interface RateCell {
  readonly type: 'rate';
  readonly per_second: number;
  readonly unit: 'B' | 'FLOP';
}

/** A factor or a share, and how certain it is. */
export interface RatioCell {
  readonly type: 'ratio';
  readonly value: number;
  readonly style: 'percent' | 'times';
  readonly of: string;
  readonly low: number | null;
  readonly high: number | null;
  readonly pairs: number | null;
  readonly required: number | null;
}

/** One device at one tick. */
export interface Reading {
  readonly device: number;
  readonly state: State;
  readonly values: (number | null)[];
  readonly why: string;
}

/** What a cell cost, from the server's history; no trace was taken. */
export interface Receipt {
  readonly type: 'receipt';
  readonly cell: CellRun;
  readonly wall_ms: number;
  readonly devices: DeviceReceipt[];
  readonly line: string;
  readonly previous: Receipt | null;
  readonly view: ReceiptView | null;
}

/** A receipt as it is shown: worded by the server, drawn by kernel and page. */
export interface ReceiptView {
  readonly cell_line: string;
  readonly is_held_back: boolean;
  readonly figures: LabelledFigure[];
  readonly devices: DeviceReceiptView[];
  readonly allocators: FigureGroup[];
  readonly notes: string[];
}

/** Answer of `GET .../api/v1/records`: what was found, the newest first. */
export interface RecordList {
  readonly records: KeptRecord[];
  readonly has_more: boolean;
}

/**
 * All runs of a code that was run several times; the profile is of the fastest.
 */
export interface Repeats {
  readonly warm_ups: number;
  readonly bare_ns: number[];
  readonly profiled_ns: number[];
}

/** Which recording is being played, so that every view can say so. */
export interface Replay {
  readonly name: string;
  readonly recorded_ms: number;
  readonly duration_ms: number;
  readonly description: string;
}

/** Rows of cells; the first column is a name, the others are figures. */
export interface ReportTable {
  readonly title: string;
  readonly name: string;
  readonly header: string[];
  readonly rows: TableCell[][];
  readonly is_code: boolean;
  readonly links: RowLinks[];
}

/** A report from its headline to its last table. */
export interface ReportView {
  readonly headline: Headline | null;
  readonly base: string;
  readonly time: TimeBar | null;
  readonly figures: LabelledFigure[];
  readonly warnings: string[];
  readonly changes: ChangeView[];
  readonly trials: TrialView[];
  readonly edited: EditedView | null;
  readonly lines: ReportTable | null;
  readonly causes: CauseView[];
  readonly sections: TableSection[];
  readonly groups: FigureGroup[];
  readonly stalls: StallsView | null;
  readonly meanings: Record<string, string>;
}

/** The most that one kind of GPU can do, per second. */
export interface Roof {
  readonly gpu: string;
  readonly basis: 'datasheet' | 'measured';
  readonly memory_bytes_per_s: number;
  readonly flops_per_s: Record<string, number>;
}

/**
 * All calls of one operator with the same operands, or all copies within a GPU.
 */
export interface RooflinePoint {
  readonly name: string;
  readonly operands: string;
  readonly gpu: string;
  readonly dtype: string | null;
  readonly calls: number;
  readonly time_ns: number;
  readonly share_ratio: number;
  readonly flops: number | null;
  readonly size_bytes: number | null;
  readonly of_datasheet: number | null;
  readonly of_measured: number | null;
}

/** What a row of a table belongs to; ids are unique within a report. */
export interface RowLinks {
  readonly id: string;
  readonly causes: string[];
  readonly changes: string[];
  readonly slice: string;
  readonly stalls: string;
}

/** What the first profile of a process did once, before the cell began. */
export interface SetUp {
  readonly imports_ns: number;
  readonly cuda_ns: number;
  readonly profiler_ns: number;
}

/** A step that took several times as long as most. */
export interface SlowStep {
  readonly step: number;
  readonly start_ns: number;
  readonly duration_ns: number;
}

/** How far a person is with a lab. */
export interface SoFar {
  readonly state: 'begun' | 'new' | 'passed' | 'tried';
  readonly attempts: number;
  readonly hints: number;
  readonly right: number;
  readonly of: number;
}

/** A source that lines are of. */
export interface SourceFile {
  readonly name: string;
  readonly text: string;
  readonly digest: string;
}

/** Answer of `GET .../api/v1/history/span?from_ms=&to_ms=`: all devices. */
export interface SpanStatistics {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly devices: DeviceSpan[];
  readonly note: string;
  readonly views: SpanView[];
}

/** One device over a span, as it is shown. */
export interface SpanView {
  readonly device: string;
  readonly figures: LabelledFigure[];
  readonly coverage: string;
}

/** Samples of a kernel with one reason. */
export interface StallReasonView {
  readonly words: string;
  readonly share: string;
  readonly share_ratio: number;
  readonly advice: string;
  readonly lab: string | null;
}

/** What a sampled run showed, or why there is none. */
export interface Stalls {
  readonly state:
    | 'denied'
    | 'failed'
    | 'held'
    | 'nothing'
    | 'refused'
    | 'sampled'
    | 'unsupported';
  readonly note: string;
  readonly device: string;
  readonly period_cycles: number;
  readonly seconds: number;
  readonly dropped: number;
  readonly kernels: KernelStalls[];
  readonly files: SourceFile[];
}

/** Where the warps of the kernels waited. */
export interface StallsView {
  readonly sentence: string;
  readonly notes: string[];
  readonly kernels: KernelStallsView[];
}

/** Answer of `GET .../api/v1/state` and of the ingest: the newest frame. */
export interface StateNow {
  readonly protocol: number;
  readonly version: string;
  readonly devices: Device[];
  readonly absences: Absence[];
  readonly replay: Replay | null;
  readonly frame: Frame | null;
  readonly verdicts: Record<string, Verdict>;
  readonly holders: Record<string, DeviceHolders>;
  readonly outlook: Record<string, MemoryOutlook>;
}

/** How something went. */
export interface StatusCell {
  readonly type: 'status';
  readonly status: CardStatus;
}

/** One step of the profiler's schedule, the profiler's own time taken off. */
export interface StepRow {
  readonly number: number;
  readonly time_ns: number;
  readonly busy_ns: number | null;
  readonly mfu: number | null;
}

/** How long the steps of a loop took, by the host's clock. */
export interface StepTimes {
  readonly steps: number;
  readonly median_ns: number;
  readonly p95_ns: number;
  readonly slowest_ns: number;
  readonly mean_ns: number | null;
}

/** One stream between its first and last work, as HTA splits it. */
export interface StreamIdle {
  readonly device: number;
  readonly stream: number;
  readonly host_wait_ns: number;
  readonly kernel_wait_ns: number;
  readonly other_ns: number;
}

/** Ask for frames; a later one replaces an earlier one. */
export interface Subscribe {
  readonly type: 'subscribe';
  readonly protocol: number;
  readonly rate_hz?: number;
  readonly devices?: string[] | null;
  readonly since_ms?: number | null;
  readonly played_before?: boolean;
}

/** All calls of one function that waits for the GPU, from one place. */
export interface SyncTotal {
  readonly name: string;
  readonly operator: string | null;
  readonly line: number | null;
  readonly calls: number;
  readonly time_ns: number;
  readonly stall_ns: number;
}

/** One cell of a table. */
export interface TableCell {
  readonly text: string;
  readonly value: number | null;
  readonly bar: number;
}

/** Tables that belong together. */
export interface TableSection {
  readonly title: string;
  readonly tables: ReportTable[];
}

/** Words, on one line. */
export interface TextCell {
  readonly type: 'text';
  readonly text: string;
}

/** One text in the list: what a lab can't run, with pictures and questions. */
export interface TextEntry {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  readonly minutes: number;
  readonly labs: string[];
  readonly questions: number;
}

/** How long both took, and how much more the later one does. */
export interface Time {
  readonly basis: 'runs' | 'steps' | 'window';
  readonly before_ns: number;
  readonly after_ns: number;
  readonly before_count: number;
  readonly after_count: number;
  readonly per_step: boolean;
  readonly change: number;
  readonly low: number;
  readonly high: number;
  readonly noise: number | null;
}

/** Where a time goes; the parts sum to it. */
export interface TimeBar {
  readonly title: string;
  readonly parts: TimePart[];
}

/** A part of the bar that shows where the time goes. */
export interface TimePart {
  readonly kind: VerdictKind | null;
  readonly label: string;
  readonly ratio: number;
  readonly causes: string[];
}

/**
 * A row between two moments: its events, or (merged) how busy each step was.
 */
export interface TimelineBars {
  readonly is_merged: boolean;
  readonly starts_ns: number[];
  readonly durations_ns: number[];
  readonly names: number[];
  readonly counts: number[];
  readonly busy_ratios: number[];
  readonly found: number[];
}

/** Answer of `GET .../timeline/event`: all that is known about one event. */
export interface TimelineDetails {
  readonly event: TimelineEvent;
  readonly label: string;
  readonly kind: 'annotation' | 'call' | 'gpu' | 'operator' | 'profiler';
  readonly facts: EventFacts;
  readonly line: number | null;
  readonly launch: TimelineEvent | null;
  readonly launched: TimelineEvent[];
  readonly launched_events: number;
}

/** One event. */
export interface TimelineEvent {
  readonly row: number;
  readonly name: string;
  readonly start_ns: number;
  readonly duration_ns: number;
}

/** All matches of one kind. */
export interface TimelineFound {
  readonly kind: 'annotation' | 'call' | 'gpu' | 'operator' | 'profiler';
  readonly events: number;
  readonly time_ns: number;
}

/** Answer of `GET .../timeline/search`: what has a text in its name. */
export interface TimelineMatches {
  readonly text: string;
  readonly found: TimelineFound[];
  readonly previous: TimelineEvent | null;
  readonly next: TimelineEvent | null;
}

/** All events of one name that reach into a selection. */
export interface TimelineName {
  readonly name: string;
  readonly kind: 'annotation' | 'call' | 'gpu' | 'operator' | 'profiler';
  readonly events: number;
  readonly time_ns: number;
}

/** One row: events that don't overlap. */
export interface TimelineRow {
  readonly label: string;
  readonly kind: 'annotation' | 'call' | 'gpu' | 'operator' | 'profiler';
  readonly level: number;
  readonly events: number;
}

/** Answer of `GET .../timeline/statistics`: a selection in figures. */
export interface TimelineStatistics {
  readonly from_ns: number;
  readonly to_ns: number;
  readonly gpus: TimelineUse[];
  readonly rows: TimelineUse[];
  readonly names: TimelineName[];
}

/** How much of a selection is covered, and the gaps between what covers it. */
export interface TimelineUse {
  readonly label: string;
  readonly kind: 'annotation' | 'call' | 'gpu' | 'operator' | 'profiler';
  readonly level: number;
  readonly events: number;
  readonly busy_ns: number;
  readonly gaps: number;
  readonly longest_gap_ns: number;
  readonly longest_gap_from_ns: number | null;
}

/**
 * Answer of `GET .../timeline`: each row in about as many bars as asked for.
 */
export interface TimelineWindow {
  readonly from_ns: number;
  readonly to_ns: number;
  readonly step_ns: number;
  readonly first_ns: number;
  readonly last_ns: number;
  readonly rows: TimelineRow[];
  readonly bars: TimelineBars[];
  readonly names: Record<string, string>;
  readonly omitted: number;
}

/**
 * A stage of an analysis, and the part of it that is done where that is known.
 */
export interface TraceProgress {
  readonly stage: string;
  readonly detail: string;
  readonly share: number | null;
}

/** One change to a cell: refused, or measured against the unchanged cell. */
export interface Trial {
  readonly name: string;
  readonly outcome: 'faster' | 'no difference shown' | 'refused' | 'slower';
  readonly sentence: string;
  readonly refused: string | null;
  readonly speed: Interval | null;
  readonly pairs: number;
  readonly unchanged_ns: number | null;
  readonly changed_ns: number | null;
  readonly difference: OutputDifference | null;
  readonly promised: [number, number] | null;
  readonly first_ns: number | null;
}

/** What a change gave that was measured on copies of the cell's state. */
export interface TrialView {
  readonly name: string;
  readonly outcome: string;
  readonly sentence: string;
}

/** Stop the frames and keep the connection (a hidden page). */
export interface Unsubscribe {
  readonly type: 'unsubscribe';
}

/** One window of one GPU, judged. */
export interface Verdict {
  readonly kind: VerdictKind;
  readonly sentence: string;
  readonly rule: string;
  readonly window_s: number | null;
  readonly since_ms: number | null;
  readonly is_changing: boolean;
  readonly unit: 'CUDA cores' | 'tensor cores' | null;
}

/** What holds each GPU back; comes once a second, and when a kind changes. */
export interface Verdicts {
  readonly type: 'verdicts';
  readonly time_ms: number;
  readonly window_s: number;
  readonly verdicts: Record<string, Verdict>;
}

/**
 * What was done in the steps of a schedule, or in all of a run without one.
 * What an optimizer does is left out: nearly all programs that train do that
 * alike.
 */
export interface Work {
  readonly device: string;
  readonly versions: Record<string, string>;
  readonly steps: number;
  readonly time_ns: number;
  readonly busy_ns: number;
  readonly launches: number;
  readonly rows: WorkRow[];
}

/** All calls of one operator, kernel or copy with the same sizes and dtypes. */
export interface WorkRow {
  readonly kind: 'GPU work' | 'operator';
  readonly name: string;
  readonly sizes: string;
  readonly dtypes: string;
  readonly calls: number;
}

export type ServerMessage =
  | Hello
  | Devices
  | Frame
  | Gap
  | Event
  | Error
  | CellReport
  | Verdicts
  | Health
  | Holders
  | Outlook
  | PostMortem
  | Receipt
  | Alerts
  | Keeping
  | ActRequest
  | ActClosed;

export type ClientMessage = Subscribe | Unsubscribe | ActAnswer;
