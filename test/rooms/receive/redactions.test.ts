import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, ServerName, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL } from '../besieged.ts'
import { Forge } from '../forge.ts'

const OTHER = 'other.test' as ServerName
const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${OTHER}` as UserId

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

async function openRoom(id: string, name: string): Promise<Forge> {
  const forge = Forge.open(roomVersion(id)!, `${name}${id}`, CREATOR)
  forge.member(GUEST, 'join')
  await home.takeJoin(forge, 'ann')
  home.answers(forge.answers())
  return forge
}

const redact = (forge: Forge, sender: UserId, redacts: EventId, more = {}) =>
  forge.make({ type: 'm.room.redaction', sender, redacts, ...more })

/** What is left of an event, and by what it was redacted: in the database, and as clients get it. */
async function left(forge: Forge, id: EventId): Promise<{ body: unknown; by: EventId | undefined; shown: unknown }> {
  const view = await home.view(forge.roomId)
  const event = view.events.get(id)!
  const by = [...view.events.values()].find(({ nid }) => nid === event.redactedBy)?.id
  const who = await home.server.as(home.user('ann'))
  const seen = await home.server.engine.services.roomReader.event(who, forge.roomId, id).catch(() => undefined)
  const client = seen && JSON.parse(seen.toBuffer().toString())
  if (client) expect(client.unsigned.redacted_because?.event_id).toBe(by)
  return {
    body: event.pdu.content.body ?? event.pdu.content.topic,
    by,
    shown: client?.content.body ?? client?.content.topic,
  }
}

const GONE = { body: undefined, shown: undefined }

describe.each(['1', '3', '9', '11', '12'])('room version %s', (id) => {
  const judgesByRules = roomVersion(id)!.authRulesCoverRedaction

  it('a redaction before its target, restarted between', async () => {
    const forge = await openRoom(id, 'early')
    const said = forge.say(CREATOR, 'oops')
    const redaction = redact(forge, CREATOR, said)
    const after = forge.say(CREATOR, 'after')
    home.answers(forge.answers({ missingEvents: async () => [] }))
    expect(await home.kinds(forge, [after, redaction])).toEqual(['accepted', 'accepted'])
    await home.server.restart()
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    expect(await left(forge, said)).toEqual({ ...GONE, by: redaction })
    await home.server.restart()
    expect(await left(forge, said)).toEqual({ ...GONE, by: redaction })
    await home.audit(forge.roomId)
  })

  it('all in one transaction: the first redaction stands', async () => {
    const forge = await openRoom(id, 'once')
    const said = forge.say(CREATOR, 'oops')
    const first = redact(forge, CREATOR, said)
    const second = redact(forge, CREATOR, said)
    expect(await home.kinds(forge, [second, first, said])).toEqual(['accepted', 'accepted', 'accepted'])
    expect(await left(forge, said)).toEqual({ ...GONE, by: first })
    await home.server.restart()
    expect(await left(forge, said)).toEqual({ ...GONE, by: first })
  })

  it('by a user without power: nothing is taken away', async () => {
    const forge = await openRoom(id, 'powerless')
    const said = forge.say(CREATOR, 'stays')
    const redaction = redact(forge, GUEST, said)
    const kinds = await home.kinds(forge, [said, redaction])
    expect(kinds).toEqual(['accepted', judgesByRules ? 'rejected' : 'accepted'])
    expect(await left(forge, said)).toEqual({ body: 'stays', by: undefined, shown: 'stays' })
    // Also when it comes first.
    forge.latest = said
    const later = forge.say(CREATOR, 'stays too')
    const early = redact(forge, GUEST, later)
    const end = forge.say(CREATOR, 'end')
    home.answers(forge.answers({ missingEvents: async () => [] }))
    await home.kinds(forge, [end, early])
    expect(await home.kinds(forge, [later])).toEqual(['accepted'])
    expect(await left(forge, later)).toEqual({ body: 'stays too', by: undefined, shown: 'stays too' })
  })

  it('of state in force, and of the redaction itself', async () => {
    const forge = await openRoom(id, 'state')
    const topic = forge.set(CREATOR, 'm.room.topic', { topic: 'secret' })
    const redaction = redact(forge, CREATOR, topic)
    const again = redact(forge, CREATOR, redaction)
    const { next_batch: since } = await home.sync('ann')
    expect(await home.kinds(forge, [topic, redaction, again])).toEqual(['accepted', 'accepted', 'accepted'])
    const shown = JSON.stringify(await home.sync('ann', since))
    expect(shown).not.toContain('secret')
    expect(await left(forge, topic)).toEqual({ ...GONE, by: redaction })
    expect((await left(forge, redaction)).by).toBe(again)
    const who = await home.server.as(home.user('ann'))
    const content = await home.server.engine.services.roomReader.stateEvent(
      who,
      forge.roomId,
      'm.room.topic',
      '',
      'content',
    )
    expect(content.toBuffer().toString()).toBe('{}')
    await home.audit(forge.roomId)
  })

  it('of an outlier, which takes its place afterwards', async () => {
    const forge = await openRoom(id, 'outlier')
    const topic = forge.set(CREATOR, 'm.room.topic', { topic: 'secret' })
    const said = forge.say(CREATOR, 'after')
    const redaction = redact(forge, CREATOR, topic)
    home.answers(forge.answers({ missingEvents: async () => [] }))
    expect(await home.kinds(forge, [said, redaction])).toEqual(['accepted', 'accepted'])
    const { rooms } = await home.sync('ann')
    expect(JSON.stringify(rooms.join[forge.roomId])).not.toContain('secret')
    expect(await home.kinds(forge, [topic])).toEqual(['accepted'])
    expect(await left(forge, topic)).toEqual({ ...GONE, by: redaction })
    await home.server.restart()
    expect(await left(forge, topic)).toEqual({ ...GONE, by: redaction })
  })

  it('of an event of another room: that stays', async () => {
    const one = await openRoom(id, 'one')
    const said = one.say(CREATOR, 'stays')
    expect(await home.kinds(one, [said])).toEqual(['accepted'])
    const two = await openRoom(id, 'two')
    const redaction = redact(two, CREATOR, said)
    expect(await home.kinds(two, [redaction])).toEqual(['accepted'])
    expect(await left(one, said)).toEqual({ body: 'stays', by: undefined, shown: 'stays' })
  })

  it('that is soft-failed takes nothing away', async () => {
    const forge = await openRoom(id, 'soft')
    const said = forge.say(GUEST, 'stays')
    const state = forge.states.get(said)!
    const ban = forge.member(GUEST, 'ban', { sender: CREATOR })
    const redaction = redact(forge, GUEST, said, { prev: [said], state })
    expect(await home.kinds(forge, [said, ban, redaction])).toEqual(['accepted', 'accepted', 'soft-failed'])
    expect(await left(forge, said)).toEqual({ body: 'stays', by: undefined, shown: 'stays' })
  })
})
