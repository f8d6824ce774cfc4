import { describe, expect, test } from 'vitest'
import { clausesOf } from '../../../src/core/auth/clauses.ts'
import { ALLOWED } from '../../../src/core/event/format.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import { type AuthVector, authVectors, judgeVector, versionsIn } from './vector-room.ts'

const VECTORS = authVectors()

function vectorsOf(id: string): AuthVector[] {
  return VECTORS.filter(({ clause, versions }) =>
    versionsIn(versions).some((version) => version.id === id && clausesOf(version).has(clause)),
  )
}

describe.each(ROOM_VERSIONS)('authorisation rules of version $id', (version) => {
  const clauses = clausesOf(version)
  const vectors = vectorsOf(version.id).map((vector) => ({ ...vector, number: clauses.get(vector.clause)!.number }))

  test.each(vectors)('$number $clause: $name: $allowed', (vector) => {
    const verdict = judgeVector(version, vector)
    const by = clauses.get(vector.by ?? vector.clause)
    if (vector.allowed) expect(verdict).toBe(ALLOWED)
    else expect(verdict).toMatchObject({ allowed: false, rule: by?.number, reason: expect.any(String) })
  })

  const answering = [...clauses].filter(([, { kind }]) => kind !== 'heading').map(([clause]) => ({ clause }))
  test.each(answering)('$clause has a case that passes and one that fails', ({ clause }) => {
    const outcomes = vectors.filter((vector) => vector.clause === clause).map(({ allowed }) => allowed)
    expect(new Set(outcomes)).toEqual(new Set([true, false]))
  })

  test('only clauses that reject are said to refuse', () => {
    const refusing = vectors.filter(({ allowed }) => !allowed).map(({ clause, by = clause }) => clauses.get(by)!.kind)
    expect(refusing.filter((kind) => kind !== 'rejects' && kind !== 'decides')).toEqual([])
  })
})

test('every case is about a clause and runs in a version that has it', () => {
  const run = new Set(ROOM_VERSIONS.flatMap(({ id }) => vectorsOf(id)))
  expect(VECTORS.filter((vector) => !run.has(vector))).toEqual([])
})

/** Numbers as they stand in the published text, so that the outline is held against it and not against itself. */
const PUBLISHED: readonly (readonly [clause: string, numbers: { readonly [versions: string]: string }])[] = [
  ['create.creator', { '1-10': '1.4' }],
  ['create.additional-creators', { 12: '1.4' }],
  ['room-id', { 12: '2' }],
  ['auth-events.other-room', { '1-11': '2.5', 12: '3.4' }],
  ['federate', { '1-11': '3', 12: '4' }],
  ['aliases.other-server', { '1-5': '4.2' }],
  ['member.authoriser.unsigned', { '8-11': '4.2.1', 12: '5.2.1' }],
  ['member.join.banned', { '1-5': '5.2.3', '6-7': '4.2.3', '8-11': '4.3.3', 12: '5.3.3' }],
  ['member.join.restricted.authoriser', { '8-11': '4.3.5.2', 12: '5.3.5.2' }],
  ['member.join.otherwise', { '1-5': '5.2.6', '6-7': '4.2.6', '8-11': '4.3.7', 12: '5.3.7' }],
  ['member.invite.third-party.otherwise', { '1-5': '5.3.1.8', '6-7': '4.3.1.8', '8-11': '4.4.1.8', 12: '5.4.1.8' }],
  ['member.leave.ban-level', { '1-5': '5.4.3', '6-7': '4.4.3', '8-11': '4.5.3', 12: '5.5.3' }],
  ['member.ban.otherwise', { '1-5': '5.5.3', '6-7': '4.5.3', '8-11': '4.6.3', 12: '5.6.3' }],
  ['member.knock.for-another', { 7: '4.6.2', '8-11': '4.7.2', 12: '5.7.2' }],
  ['member.unknown', { '1-5': '5.6', 6: '4.6', 7: '4.7', '8-11': '4.8', 12: '5.8' }],
  ['sender-outside', { '1-5': '6', '6-11': '5', 12: '6' }],
  ['third-party-invite.level', { '1-5': '7.1', '6-11': '6.1', 12: '7.1' }],
  ['level', { '1-5': '8', '6-11': '7', 12: '8' }],
  ['state-key', { '1-5': '9', '6-11': '8', 12: '9' }],
  ['power-levels.user-types', { '1-5': '10.1', '6-9': '9.1', '10-11': '9.3', 12: '10.3' }],
  ['power-levels.creators', { 12: '10.4' }],
  ['power-levels.named.new', { '1-5': '10.3.2', '6-9': '9.3.2', '10-11': '9.5.2', 12: '10.6.2' }],
  ['power-levels.users-new.level', { '1-5': '10.7.1', '6-9': '9.7.1', '10-11': '9.9.1', 12: '10.10.1' }],
  ['redaction.otherwise', { '1-2': '11.3' }],
  ['otherwise', { '1-2': '12', '3-5': '11', '6-11': '10', 12: '11' }],
]

test.each(PUBLISHED)('%s is numbered as published: %j', (clause, numbers) => {
  const published = Object.entries(numbers).flatMap(([range, number]) =>
    versionsIn(range).map((version) => [version.id, number]),
  )
  const ours = ROOM_VERSIONS.map((version) => [version.id, clausesOf(version).get(clause)?.number])
  const present = ours.filter(([, number]) => number !== undefined)
  expect(Object.fromEntries(present)).toEqual(Object.fromEntries(published))
})
