import { expect, test } from 'vitest'
import { openOffice, SECRET } from '../admin/office.ts'
import { startGateway } from '../push/gateway.ts'
import { openNeighbourhood } from '../support/neighbours.ts'
import { endWave } from './wave.ts'

test('one operator ends a wave of spam with three acts', async () => {
  const street = openNeighbourhood()
  const gateway = await startGateway(street.authority)
  try {
    const [home, away] = await Promise.all([street.open({ registration: { shared_secret: SECRET } }), street.open()])
    await endWave(home, away, gateway, { accounts: 8, invitesEach: 5, messagesEach: 10 }, Date.now)
  } finally {
    await gateway.close()
    await street.close()
  }
})

test('an act needs to be told whom it concerns, and never concerns administrators', async () => {
  const office = await openOffice()
  try {
    const alice = await office.person('alice')
    const call = (path: string, body: object, token?: string) =>
      office.ask('POST', `/_hearth/admin/v1/crowds/${path}`, body, token)
    const empty = await call('restrain', { crowd: {}, lock: true })
    expect([empty.status, empty.body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    expect((await call('find', { crowd: { name: '*' } })).body).toEqual({ total: 1, user_ids: [alice.userId] })
    for (const name of ['al?ce', 'ALICE', 'a*e'])
      expect((await call('find', { crowd: { name } })).body.total, name).toBe(1)
    for (const name of ['al', '%', '_____', 'a\\\\*'])
      expect((await call('find', { crowd: { name } })).body.total, name).toBe(0)
    expect((await call('find', { crowd: { seen_at: '203.0.113.9' } })).body.total).toBe(0)
    expect((await call('find', { crowd: { user_ids: ['@far:elsewhere.example'] } })).body.errcode).toBe(
      'M_INVALID_PARAM',
    )
    expect((await call('restrain', { crowd: { name: '*' }, suspend: true })).body).toEqual({ total: 1 })
    expect((await call('find', { crowd: { name: '*' } }, alice.token)).status).toBe(403)
    expect((await office.call('GET', `/v2/users/${office.boss.userId}`)).suspended).toBe(false)
    expect((await office.call('GET', `/v2/users/${alice.userId}`)).suspended).toBe(true)
  } finally {
    await office.close()
  }
})
