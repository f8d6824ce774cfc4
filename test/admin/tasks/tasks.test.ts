import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, createRoom, type Json, sendText } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
let alice: Account
let room: string

const enc = encodeURIComponent

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  room = await createRoom(office.api, alice.token, { preset: 'public_chat' })
})

afterAll(() => office.close())

const hits = async (term: string) => {
  const body = { search_categories: { room_events: { search_term: term } } }
  return (await office.api.call('POST', '/search', { token: alice.token, body })).search_categories.room_events.count
}

describe('background updates', () => {
  test('stop and go on: while they are stopped, search finds nothing new', async () => {
    const path = '/v1/background_updates/enabled'
    expect(await office.call('GET', path)).toEqual({ enabled: true })
    await waitUntil('the index', async () => (await office.call('GET', '/_hearth/admin/v1/search')).is_done)
    expect(await office.call('POST', path, { enabled: false })).toEqual({ enabled: false })
    expect(await office.call('GET', path)).toEqual({ enabled: false })
    await sendText(office.api, alice.token, room, 'w', 'walrus')
    const { indexed, newest } = await office.call('GET', '/_hearth/admin/v1/search')
    expect(indexed).toBeLessThan(newest)
    expect(await hits('walrus')).toBe(0)
    await office.call('POST', path, { enabled: true })
    await waitUntil('the word', async () => (await hits('walrus')) === 1)
    await waitUntil('an end', async () => {
      const status = await office.call('GET', '/v1/background_updates/status')
      return status.enabled && Object.keys(status.current_updates).length === 0
    })
  })

  test('a job is begun by its name', async () => {
    const start = (job_name: string) => office.ask('POST', '/v1/background_updates/start_job', { job_name })
    await office.server.database.db.tx((tx) => tx.query('DELETE FROM directory_user'))
    const find = async () => {
      const body = { search_term: 'alice' }
      const call = { token: office.boss.token, body }
      return (await office.api.call('POST', '/user_directory/search', call)).results.length
    }
    expect(await find()).toBe(0)
    expect((await start('regenerate_directory')).status).toBe(200)
    await waitUntil('the directory', async () => (await find()) === 1)
    const unknown = await start('nonsense')
    expect([unknown.status, unknown.body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
  })
})

test('scheduled tasks are listed with their outcome', async () => {
  const last = await sendText(office.api, alice.token, room, 'z', 'last')
  const body = { delete_local_events: true }
  const { purge_id } = await office.call('POST', `/v1/purge_history/${enc(room)}/${enc(last)}`, body)
  const listed = await waitUntil('the end of the purge', async () => {
    const { scheduled_tasks } = await office.call('GET', `/v1/scheduled_tasks?resource_id=${enc(room)}`)
    return scheduled_tasks[0]?.status === 'complete' && scheduled_tasks
  })
  expect(listed.map(({ id, action, error }: Json) => [id, action, error])).toEqual([[purge_id, 'purge_history', null]])
  const of = async (query: string) => (await office.call('GET', `/v1/scheduled_tasks?${query}`)).scheduled_tasks.length
  expect(await of('action_name=purge_history')).toBe(1)
  expect([await of('action_name=other'), await of('job_status=failed'), await of('max_timestamp=1')]).toEqual([0, 0, 0])
})

test('statistics/database/rooms shows the largest rooms', async () => {
  const { rooms } = await office.call('GET', '/v1/statistics/database/rooms')
  expect(rooms[0].room_id).toBe(room)
  expect(rooms[0].estimated_size).toBeGreaterThan(1_000)
})

test('experimental features are those of the server, for everybody', async () => {
  const path = `/v1/experimental_features/${enc(alice.userId)}`
  const { features } = await office.call('GET', path)
  expect(features.msc3881).toBe(true)
  expect(await office.call('PUT', path, { features: { msc3881: true } })).toEqual({})
  for (const wanted of [{ msc3881: false }, { msc9999: true }]) {
    const answer = await office.ask('PUT', path, { features: wanted })
    expect([answer.status, answer.body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
  }
  const nobody = await office.ask('GET', '/v1/experimental_features/@none:localhost')
  expect([nobody.status, nobody.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
})
