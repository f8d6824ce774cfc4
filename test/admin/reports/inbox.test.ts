import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MAX_NOTES_PER_REPORT } from '../../../src/domain/limits/reports.ts'
import { type Account, createRoom, type Json, join, sendText } from '../../support/api.ts'
import { type Office, openOffice, registerBySecret } from '../office.ts'

let office: Office
let second: Account
let alice: Account
let troll: Account
let room: string

const enc = encodeURIComponent
const AT = '/_hearth/admin/v1/reports'

beforeAll(async () => {
  office = await openOffice()
  second = await registerBySecret(office.api, 'second', true)
  alice = await office.person('alice')
  troll = await office.person('troll')
  room = await createRoom(office.api, alice.token, { preset: 'public_chat', name: '<script>alert(1)</script>' })
  await join(office.api, troll.token, room)
})

afterAll(() => office.close())

const newest = async (query = ''): Promise<Json> => (await office.call('GET', `${AT}?limit=1${query}`)).reports[0]

async function reportEvent(reason: string): Promise<Json> {
  const eventId = await sendText(office.api, troll.token, room, reason, `rude ${reason}`)
  await office.api.call('POST', `/rooms/${enc(room)}/report/${enc(eventId)}`, { token: alice.token, body: { reason } })
  return newest()
}

describe('the inbox of reports', () => {
  test('holds reports of events, rooms and users, open until somebody decides', async () => {
    await reportEvent('one')
    await office.api.call('POST', `/rooms/${enc(room)}/report`, { token: alice.token, body: { reason: 'room' } })
    await office.api.call('POST', `/users/${enc(troll.userId)}/report`, {
      token: alice.token,
      body: { reason: 'user' },
    })
    const { reports, total } = await office.call('GET', `${AT}?state=open`)
    expect([total, reports.map(({ kind, state }: Json) => [kind, state])]).toEqual([
      3,
      [
        ['user', 'open'],
        ['room', 'open'],
        ['event', 'open'],
      ],
    ])
    expect((await office.call('GET', `${AT}?kind=event`)).total).toBe(1)
    expect((await office.call('GET', `${AT}?state=decided`)).total).toBe(0)
    const first = await office.call('GET', `${AT}?limit=2`)
    expect([first.reports.length, first.next_token]).toEqual([2, 2])
    expect((await office.call('GET', `${AT}?limit=2&from=2`)).reports).toHaveLength(1)
    expect((await office.ask('GET', AT, undefined, alice.token)).status).toBe(403)
  })

  test('keeps the event as it was, with notes and the decision', async () => {
    const { id, event_id } = await reportEvent('two')
    await office.api.call('PUT', `/rooms/${enc(room)}/redact/${enc(event_id)}/r`, { token: troll.token, body: {} })
    await office.call('POST', `${AT}/${id}/notes`, { text: 'The third one this week.' })
    const read = await office.call('GET', `${AT}/${id}`)
    expect(read.event_json.content.body).toBe('rude two')
    expect(read.notes).toMatchObject([{ author: office.boss.userId, text: 'The third one this week.' }])
    await office.call('POST', `${AT}/${id}/decide`, { decision: 'banned' })
    expect(await office.call('GET', `${AT}/${id}`)).toMatchObject({
      state: 'decided',
      decided_by: office.boss.userId,
      decision: 'banned',
    })
    await office.call('POST', `${AT}/${id}/reopen`)
    expect((await office.call('GET', `${AT}/${id}`)).state).toBe('open')
    const twice = await office.ask('POST', `${AT}/${id}/reopen`)
    expect(twice.status).toBe(409)
    const { acts } = await office.call('GET', `/_hearth/admin/v1/acts?target=${id}`)
    expect(acts.map(({ act }: Json) => act)).toContain('POST /_hearth/admin/v1/reports/{reportId}/decide')
  })

  test('is decided by the first of two operators, and the second is told', async () => {
    for (let round = 0; round < 5; round++) {
      const { id } = await reportEvent(`race ${round}`)
      const path = `${AT}/${id}/decide`
      const answers = await Promise.all([
        office.ask('POST', path, { decision: 'mine' }),
        office.ask('POST', path, { decision: 'hers' }, second.token),
      ])
      const [won, lost] = answers.toSorted((a, b) => a.status - b.status)
      expect([won!.status, lost!.status]).toEqual([200, 409])
      const { decided_by, decision } = await office.call('GET', `${AT}/${id}`)
      expect(lost!.body.error).toContain(`${decided_by} has decided about this report already: ${decision}`)
      expect(decision).toBe(won === answers[0] ? 'mine' : 'hers')
    }
  })

  test('refuses what is too long or not there', async () => {
    const { id } = await newest()
    const long = 'x'.repeat(1_000_000)
    expect((await office.ask('POST', `${AT}/${id}/notes`, { text: long })).status).toBe(400)
    expect((await office.ask('POST', `${AT}/${id}/decide`, { decision: '' })).status).toBe(400)
    for (const [method, path, body] of [
      ['GET', '/999999', undefined],
      ['POST', '/999999/decide', { decision: 'x' }],
      ['POST', '/999999/notes', { text: 'x' }],
      ['POST', '/999999/reopen', undefined],
    ] as const) {
      const answer = await office.ask(method, AT + path, body)
      expect([answer.status, answer.body.errcode], path).toEqual([404, 'M_NOT_FOUND'])
    }
    await office.server.database.db.tx((tx) =>
      tx.query(
        `INSERT INTO report_note (report_nid, at, author, text) SELECT $1, 0, 'x', 'x' FROM generate_series(1, $2)`,
        [id, MAX_NOTES_PER_REPORT],
      ),
    )
    expect((await office.ask('POST', `${AT}/${id}/notes`, { text: 'one more' })).body.errcode).toBe('M_TOO_LARGE')
    const body = { reason: 'x'.repeat(1_000_000) }
    const report = await office.api.request('POST', `/users/${enc(troll.userId)}/report`, { token: alice.token, body })
    expect(report.status).toBe(400)
  })
})
