// Generated from extension/warpbook/*protocol.py. Do not edit.

import type { Shape } from './checks';
import * as check from './checks';
import type * as types from './protocol';

export const isAskedQuestion: Shape<types.AskedQuestion> = check.record<types.AskedQuestion>({
  lab: check.text,
  ask: check.text,
  code: check.text,
  choices: check.list(check.text, 8),
});

export const isBytesCell: Shape<types.BytesCell> = check.record<types.BytesCell>({
  type: check.oneOf('bytes'),
  size_bytes: check.whole,
  what: check.text,
}, {
  what: "",
});

export const isCodeCell: Shape<types.CodeCell> = check.record<types.CodeCell>({
  type: check.oneOf('code'),
  code: check.text,
});

export const isDurationCell: Shape<types.DurationCell> = check.record<types.DurationCell>({
  type: check.oneOf('duration'),
  duration_ns: check.number,
});

export const isLocationCell: Shape<types.LocationCell> = check.record<types.LocationCell>({
  type: check.oneOf('location'),
  line: check.whole,
  code: check.text,
  column: check.optional(check.whole),
}, {
  column: null,
});

export const isNumberCell: Shape<types.NumberCell> = check.record<types.NumberCell>({
  type: check.oneOf('number'),
  value: check.whole,
  unit: check.text,
}, {
  unit: "",
});

export const isRateCell: Shape<types.RateCell> = check.record<types.RateCell>({
  type: check.oneOf('rate'),
  per_second: check.number,
  unit: check.oneOf('B', 'FLOP'),
});

export const isRatioCell: Shape<types.RatioCell> = check.record<types.RatioCell>({
  type: check.oneOf('ratio'),
  value: check.number,
  style: check.oneOf('percent', 'times'),
  of: check.text,
  low: check.optional(check.number),
  high: check.optional(check.number),
  pairs: check.optional(check.whole),
  required: check.optional(check.number),
}, {
  of: "",
  low: null,
  high: null,
  pairs: null,
  required: null,
});

export const isStatusCell: Shape<types.StatusCell> = check.record<types.StatusCell>({
  type: check.oneOf('status'),
  status: check.oneOf('error', 'failed', 'passed', 'timed out', 'undecided', 'unsupported'),
});

export const isTextCell: Shape<types.TextCell> = check.record<types.TextCell>({
  type: check.oneOf('text'),
  text: check.text,
});

export const isCardFact: Shape<types.CardFact> = check.record<types.CardFact>({
  label: check.text,
  cells: check.list(check.tagged({ text: isTextCell, status: isStatusCell, number: isNumberCell, ratio: isRatioCell, bytes: isBytesCell, duration: isDurationCell, rate: isRateCell, location: isLocationCell, code: isCodeCell }), 20),
});

export const isCardFacts: Shape<types.CardFacts> = check.record<types.CardFacts>({
  type: check.oneOf('facts'),
  facts: check.list(isCardFact, 100),
});

export const isCardLog: Shape<types.CardLog> = check.record<types.CardLog>({
  type: check.oneOf('log'),
  lines: check.list(check.text, 1000),
  more: check.whole,
}, {
  more: 0,
});

export const isCardTable: Shape<types.CardTable> = check.record<types.CardTable>({
  type: check.oneOf('table'),
  heads: check.list(check.text, 20),
  rows: check.list(check.list(check.tagged({ text: isTextCell, status: isStatusCell, number: isNumberCell, ratio: isRatioCell, bytes: isBytesCell, duration: isDurationCell, rate: isRateCell, location: isLocationCell, code: isCodeCell }), 20), 1000),
});

export const isCardText: Shape<types.CardText> = check.record<types.CardText>({
  type: check.oneOf('paragraph'),
  text: check.text,
  tone: check.oneOf('plain', 'quiet', 'warning'),
}, {
  tone: "plain",
});

export const isCardBar: Shape<types.CardBar> = check.record<types.CardBar>({
  begin_ns: check.whole,
  end_ns: check.whole,
  label: check.text,
  line: check.optional(check.whole),
  is_waiting: check.flag,
}, {
  line: null,
  is_waiting: false,
});

export const isCardLane: Shape<types.CardLane> = check.record<types.CardLane>({
  engine: check.text,
  name: check.text,
  bars: check.list(isCardBar, 1000),
});

export const isCardTimeline: Shape<types.CardTimeline> = check.record<types.CardTimeline>({
  type: check.oneOf('timeline'),
  end_ns: check.whole,
  lanes: check.list(isCardLane, 20),
});

export const isCardSection: Shape<types.CardSection> = check.record<types.CardSection>({
  title: check.text,
  parts: check.list(check.tagged({ paragraph: isCardText, facts: isCardFacts, table: isCardTable, log: isCardLog, timeline: isCardTimeline, location: isLocationCell }), 100),
  fold: check.oneOf('', 'closed', 'open'),
}, {
  fold: "",
});

export const isCard: Shape<types.Card> = check.record<types.Card>({
  title: check.text,
  status: check.oneOf('error', 'failed', 'passed', 'timed out', 'undecided', 'unsupported'),
  label: check.text,
  message: check.text,
  sections: check.list(isCardSection, 50),
});

export const isCourseLab: Shape<types.CourseLab> = check.record<types.CourseLab>({
  lab: check.text,
  title: check.text,
  url: check.text,
  is_open: check.flag,
  due_ms: check.optional(check.number),
  mark: check.text,
  points: check.optional(check.number),
  most_points: check.number,
  attempts: check.whole,
  attempts_left: check.optional(check.whole),
});

export const isOwnCourse: Shape<types.OwnCourse> = check.record<types.OwnCourse>({
  title: check.text,
  role: check.text,
  url: check.text,
  labs: check.list(isCourseLab, 1000),
});

export const isCourseList: Shape<types.CourseList> = check.record<types.CourseList>({
  courses: check.list(isOwnCourse, 100),
  next_lab: check.optional(check.text),
  problem: check.text,
}, {
  next_lab: null,
  problem: "",
});

export const isLabMark: Shape<types.LabMark> = check.record<types.LabMark>({
  submission: check.whole,
  number: check.whole,
  graded_ms: check.number,
  passed: check.flag,
  right: check.whole,
  of: check.whole,
  status: check.text,
  message: check.text,
  first_failure: check.text,
});

export const isLabCards: Shape<types.LabCards> = check.record<types.LabCards>({
  lab: check.text,
  cards: check.list(isLabMark, 100),
  newest: check.optional(isCard),
});

export const isSoFar: Shape<types.SoFar> = check.record<types.SoFar>({
  state: check.text,
  attempts: check.whole,
  hints: check.whole,
  right: check.whole,
  of: check.whole,
}, {
  state: "new",
  attempts: 0,
  hints: 0,
  right: 0,
  of: 0,
});

export const isLabEntry: Shape<types.LabEntry> = check.record<types.LabEntry>({
  id: check.text,
  number: check.whole,
  title: check.text,
  track: check.text,
  language: check.text,
  minutes: check.whole,
  difficulty: check.optional(check.text),
  goal: check.text,
  after: check.list(check.text, 50),
  needs: check.list(check.text, 50),
  can_check: check.flag,
  why: check.text,
  progress: check.optional(isSoFar),
});

export const isLabHints: Shape<types.LabHints> = check.record<types.LabHints>({
  lab: check.text,
  of: check.whole,
  hints: check.list(check.text, 100),
});

export const isTextEntry: Shape<types.TextEntry> = check.record<types.TextEntry>({
  id: check.text,
  title: check.text,
  about: check.text,
  minutes: check.whole,
  labs: check.list(check.text, 50),
  questions: check.whole,
});

export const isLabList: Shape<types.LabList> = check.record<types.LabList>({
  labs: check.list(isLabEntry, 1000),
  compiler: check.optional(check.text),
  gpus: check.whole,
  notice: check.text,
  next_lab: check.optional(check.text),
  problems: check.list(check.text, 1000),
  texts: check.list(isTextEntry, 100),
}, {
  notice: "",
  next_lab: null,
  problems: [],
  texts: [],
});

export const isLabMistake: Shape<types.LabMistake> = check.record<types.LabMistake>({
  name: check.text,
  reason: check.text,
});

export const isLabOpened: Shape<types.LabOpened> = check.record<types.LabOpened>({
  lab: check.text,
  path: check.text,
});

export const isLabSolution: Shape<types.LabSolution> = check.record<types.LabSolution>({
  lab: check.text,
  file: check.text,
  reference: check.text,
  discussion: check.text,
  mistakes: check.list(isLabMistake, 100),
});

export const isQuizBegin: Shape<types.QuizBegin> = check.record<types.QuizBegin>({
  lab: check.text,
  words: check.text,
});

export const isQuizMark: Shape<types.QuizMark> = check.record<types.QuizMark>({
  is_right: check.flag,
  words: check.text,
});

export const isQuizSheet: Shape<types.QuizSheet> = check.record<types.QuizSheet>({
  title: check.text,
  questions: check.list(isAskedQuestion, 50),
  notice: check.text,
});
