import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_PUSH_RULES } from '../../src/domain/limits/push-rules.ts'
import { type House, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person
let count = 0

beforeAll(async () => {
  house = await openHouse()
})

beforeEach(async () => {
  alice = await house.person(`alice${count++}`)
})

afterAll(() => house.close())

const NOTIFY = { actions: ['notify'] }
const path = (name: string, rest = '') => `/pushrules/global/${name}${rest}`
const put = (name: string, body: object = NOTIFY, query = '') => alice.ask('PUT', path(name, query), body)
const rules = (): Promise<Json> => alice.call('GET', '/pushrules/')
const own = async (kind: string) =>
  (await rules()).global[kind].filter((rule: Json) => !rule.default).map((rule: Json) => rule.rule_id)
const refusal = (status: number, errcode: string) => ({ status, body: { errcode } })

describe('push rules of a user', () => {
  it('are made, read in every shape, changed and deleted', async () => {
    const conditions = [{ kind: 'event_match', key: 'room_id', pattern: '!x:localhost' }]
    expect(await put('override/mine', { ...NOTIFY, conditions })).toEqual({ status: 200, body: {} })
    const rule = { rule_id: 'mine', default: false, enabled: true, conditions, actions: ['notify'] }
    expect(await alice.call('GET', path('override/mine'))).toEqual(rule)
    expect((await rules()).global.override[1]).toEqual(rule)
    expect(await alice.call('GET', '/pushrules/global/')).toEqual((await rules()).global)
    await alice.call('PUT', path('override/mine/enabled'), { enabled: false })
    expect(await alice.call('GET', path('override/mine/enabled'))).toEqual({ enabled: false })
    await alice.call('PUT', path('override/mine/actions'), { actions: ['dont_notify', 'coalesce'] })
    expect(await alice.call('GET', path('override/mine/actions'))).toEqual({ actions: ['dont_notify', 'coalesce'] })
    expect(await alice.ask('DELETE', path('override/mine'))).toEqual({ status: 200, body: {} })
    expect(await alice.ask('GET', path('override/mine'))).toMatchObject(refusal(404, 'M_NOT_FOUND'))
    expect(await alice.ask('DELETE', path('override/mine'))).toMatchObject(refusal(404, 'M_NOT_FOUND'))
  })

  it('of all kinds have what their kind has', async () => {
    await put('content/cake', { ...NOTIFY, pattern: 'cake' })
    await put('room/!x:localhost')
    await put('sender/@x:localhost')
    await put('underride/u')
    const { global } = await rules()
    expect(global.content).toEqual([
      { rule_id: 'cake', default: false, enabled: true, pattern: 'cake', actions: ['notify'] },
    ])
    expect(global.room).toEqual([{ rule_id: '!x:localhost', default: false, enabled: true, actions: ['notify'] }])
    expect(global.sender[0].rule_id).toBe('@x:localhost')
    expect(global.underride[0]).toEqual({
      rule_id: 'u',
      default: false,
      enabled: true,
      conditions: [],
      actions: ['notify'],
    })
  })

  it('come first when they are new, and go where they are told to', async () => {
    for (const id of ['c', 'b', 'a']) await put(`override/${id}`)
    expect(await own('override')).toEqual(['a', 'b', 'c'])
    await put('override/x', NOTIFY, '?before=c')
    await put('override/y', NOTIFY, '?after=c')
    await put('override/a', NOTIFY, '?before=x&after=y')
    expect(await own('override')).toEqual(['b', 'a', 'x', 'c', 'y'])
    // A new form of a rule is no new rule.
    await put('override/x', { actions: [] })
    expect(await own('override')).toEqual(['b', 'a', 'x', 'c', 'y'])
    for (const query of ['?before=nobody', '?after=.m.rule.master']) {
      expect(await put('override/z', NOTIFY, query)).toMatchObject(refusal(400, 'M_UNKNOWN'))
    }
  })

  it('that are deleted while disabled are enabled when they are made again', async () => {
    await put('content/cake', { ...NOTIFY, pattern: 'cake' })
    await alice.call('PUT', path('content/cake/enabled'), { enabled: false })
    await put('content/cake', { actions: [], pattern: 'pie' })
    expect(await alice.call('GET', path('content/cake/enabled'))).toEqual({ enabled: false })
    await alice.call('DELETE', path('content/cake'))
    await put('content/cake', { ...NOTIFY, pattern: 'cake' })
    expect(await alice.call('GET', path('content/cake/enabled'))).toEqual({ enabled: true })
  })

  it('change what the default ones do, and never delete them', async () => {
    await alice.call('PUT', path('underride/.m.rule.message/actions'), { actions: [] })
    await alice.call('PUT', path('override/.m.rule.master/enabled'), { enabled: true })
    const { global } = await rules()
    expect(global.override[0]).toMatchObject({ rule_id: '.m.rule.master', enabled: true, default: true })
    expect(await alice.call('GET', path('underride/.m.rule.message'))).toMatchObject({ enabled: true, actions: [] })
    expect(await alice.ask('DELETE', path('override/.m.rule.master'))).toMatchObject(refusal(400, 'M_INVALID_PARAM'))
  })

  it.each([
    ['an id that begins with a dot', 'override/.mine', NOTIFY, 400, 'M_INVALID_PARAM'],
    ['an id with a slash', 'override/a%2Fb', NOTIFY, 400, 'M_INVALID_PARAM'],
    ['an id with a backslash', 'override/a%5Cb', NOTIFY, 400, 'M_INVALID_PARAM'],
    ['an id that is too long', `override/${'x'.repeat(513)}`, NOTIFY, 400, 'M_INVALID_PARAM'],
    ['a kind that is none', 'overrule/a', NOTIFY, 404, 'M_NOT_FOUND'],
    ['a content rule without pattern', 'content/a', NOTIFY, 400, 'M_INVALID_PARAM'],
    ['no actions', 'override/a', {}, 400, 'M_MISSING_PARAM'],
    ['actions that are none', 'override/a', { actions: [7] }, 400, 'M_BAD_JSON'],
    ['a condition without kind', 'override/a', { ...NOTIFY, conditions: [{}] }, 400, 'M_INVALID_PARAM'],
    ['a rule of 5 KB', 'content/a', { ...NOTIFY, pattern: 'x'.repeat(5000) }, 413, 'M_TOO_LARGE'],
    ['a pattern of wildcards', 'content/a', { ...NOTIFY, pattern: '*?'.repeat(40) }, 400, 'M_INVALID_PARAM'],
  ])('refuse %s', async (_, name, body, status, errcode) => {
    expect(await put(name, body)).toMatchObject({ status, body: { errcode } })
    for (const kind of ['override', 'content']) expect(await own(kind)).toEqual([])
  })

  it('are 404 where there are none, for enabled and actions too', async () => {
    for (const name of ['override/none', 'override/.m.rule.roomnotif']) {
      expect(await alice.ask('PUT', path(name, '/enabled'), { enabled: true })).toMatchObject(
        refusal(404, 'M_NOT_FOUND'),
      )
      expect(await alice.ask('PUT', path(name, '/actions'), NOTIFY)).toMatchObject(refusal(404, 'M_NOT_FOUND'))
      expect(await alice.ask('GET', path(name, '/enabled'))).toMatchObject(refusal(404, 'M_NOT_FOUND'))
    }
  })

  it('change one after another, however many requests come at once', async () => {
    const ids = Array.from({ length: 20 }, (_, at) => `r${at}`)
    await Promise.all(ids.map((id) => put(`sender/${id}`)))
    expect((await own('sender')).sort()).toEqual(ids.sort())
  })

  it('survive a restart of what is in memory', async () => {
    await put('sender/@x:localhost')
    const [row] = await house.server.database.db.query<{ rules: string }>(
      'SELECT rules FROM push_rules JOIN matrix_user USING (user_nid) WHERE user_id = $1',
      [alice.userId],
    )
    expect(JSON.parse(row!.rules)).toEqual({
      own: { sender: [{ id: '@x:localhost', actions: ['notify'] }] },
      changes: {},
    })
  })
})

describe('m.push_rules', () => {
  const pushRulesIn = (sync: Json) => sync.account_data?.events.find(({ type }: Json) => type === 'm.push_rules')

  it('is in the first sync of everybody', async () => {
    expect(pushRulesIn(await alice.sync())).toEqual({ type: 'm.push_rules', content: await rules() })
  })

  it('wakes every device after a change, and stays out of syncs without one', async () => {
    const { next_batch } = await alice.sync()
    const waiting = alice.call('GET', `/sync?timeout=10000&since=${next_batch}`)
    await put('sender/@x:localhost')
    const woken = await waiting
    expect(pushRulesIn(woken).content).toEqual(await rules())
    const bob = await house.person(`bob${count++}`)
    const room = await bob.createRoom({ preset: 'public_chat' })
    await alice.join(room)
    expect(pushRulesIn(await alice.sync(`&since=${woken.next_batch}`))).toBeUndefined()
  })

  it('is left out by a filter', async () => {
    const filter = encodeURIComponent(JSON.stringify({ account_data: { not_types: ['m.push_rules'] } }))
    expect(pushRulesIn(await alice.sync(`&filter=${filter}`))).toBeUndefined()
  })

  it('is read as account data, and not written as such', async () => {
    await put('sender/@x:localhost')
    const at = `/user/${alice.userId}/account_data/m.push_rules`
    expect(await alice.call('GET', at)).toEqual(await rules())
    const inRoom = `/user/${alice.userId}/rooms/!x:localhost/account_data/m.push_rules`
    for (const refused of [at, inRoom]) {
      expect(await alice.ask('PUT', refused, {})).toMatchObject(refusal(405, 'M_BAD_JSON'))
    }
  })
})

describe('too many rules', () => {
  it('are refused, and the rest stays', async () => {
    const [row] = await house.server.database.db.query<{ user_nid: number }>(
      'SELECT user_nid FROM matrix_user WHERE user_id = $1',
      [alice.userId],
    )
    await put('sender/first')
    const sender = Array.from({ length: MAX_PUSH_RULES }, (_, at) => ({ id: `@u${at}:x.example`, actions: [] }))
    const { pushRules } = house.server.services
    pushRules.changed(row!.user_nid, { own: { sender }, changes: {} }, 1)
    expect(await put('sender/one-more')).toMatchObject(refusal(403, 'M_FORBIDDEN'))
    expect((await own('sender')).length).toBe(MAX_PUSH_RULES)
    expect(await alice.ask('DELETE', path(`sender/${encodeURIComponent('@u7:x.example')}`))).toMatchObject({
      status: 200,
    })
  })
})
