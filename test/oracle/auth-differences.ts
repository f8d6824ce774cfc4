import type { Refusal, Verdict } from '../../src/core/event/format.ts'
import { serverOf } from '../../src/core/ids.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { type AuthCase, stateKeyOf } from './auth-cases.ts'

/** What the other implementation answered: null where it allows. */
export type PeerVerdict = { readonly reason: string; readonly raised: boolean } | null

/** A version with the levels that the published text has where nothing is said: before version 7 ours are those of document 2. */
export function publishedDefaults(version: RoomVersion): RoomVersion {
  return { ...version, powerLevelDefaults: { invite: 0, stateWithoutEvent: 50 } }
}

type Explanation = readonly [why: string, holds: (difference: Difference) => boolean]

export interface Difference {
  readonly version: RoomVersion
  readonly case: AuthCase
  /** With the published levels. */
  readonly ours: Verdict
  readonly theirs: PeerVerdict
}

const isClosedBy = (theirs: PeerVerdict) => theirs?.reason.includes('unfederatable') === true

/** Where the published text says something else than the other implementation does. */
const EXPLANATIONS: readonly Explanation[] = [
  [
    'rule 3 (m.federate) closes a room where the property is false; there, whatever is not true closes it',
    ({ case: { state }, theirs }) => {
      const federate = state.get(stateKeyOf('m.room.create', ''))!.content['m.federate']
      return isClosedBy(theirs) && federate !== undefined && typeof federate !== 'boolean'
    },
  ],
  [
    'rule 3 (m.federate) asks for the server of the sender; there, also for that of the target of a membership',
    ({ case: { event, state }, theirs }) => {
      const here = serverOf(state.get(stateKeyOf('m.room.create', ''))!.sender)
      return isClosedBy(theirs) && serverOf(event.sender) === here && serverOf(event.state_key ?? '') !== here
    },
  ],
  [
    'the power-levels rule compares with the power levels of the room, also under another state key than ""',
    ({ case: { event }, theirs }) => theirs === null && event.type === 'm.room.power_levels' && event.state_key !== '',
  ],
  [
    'a level is an integer (or text of one, or a float); there, also true, which is 1',
    ({ case: { event }, ours, theirs }) =>
      theirs === null &&
      isRefusal(ours) &&
      / integer\b/.test(ours.reason) &&
      JSON.stringify(event.content).includes(':true'),
  ],
  [
    'rule 11 of versions 1 and 2 allows redactions of events of the same server; there, also redactions of nothing',
    ({ version, case: { event }, theirs }) =>
      theirs === null &&
      version.authRulesCoverRedaction &&
      event.type === 'm.room.redaction' &&
      event.redacts === undefined,
  ],
  [
    'rule 4.2 (5.2) asks for the signature of who lets a user in on any membership; there, on joins',
    ({ case: { event }, ours, theirs }) =>
      theirs === null &&
      isRefusal(ours) &&
      ours.reason.startsWith('The server of join_authorised') &&
      event.content.membership !== 'join',
  ],
]

function isRefusal(verdict: Verdict): verdict is Refusal {
  return !verdict.allowed
}

/** Why the two differ, or undefined where nothing explains it. */
export function explain(difference: Difference): string | undefined {
  return EXPLANATIONS.find(([, holds]) => holds(difference))?.[0]
}
