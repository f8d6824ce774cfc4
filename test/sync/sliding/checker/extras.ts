import type { Json } from '../../../support/api.ts'
import type { RoomNews } from './asking.ts'
import type { ChainParts } from './chain.ts'
import type { KnownRoom } from './known-room.ts'
import type { WorldRoom } from './world.ts'

/** What a connection receives by its extensions. */
export interface Extras {
  request(): object
  apply(extensions: Json, rooms: ReadonlyMap<string, RoomNews>): void
  /** @param joined those rooms of the scope that the user is in */
  check(scope: readonly WorldRoom[], joined: readonly WorldRoom[], known: ReadonlyMap<string, KnownRoom>): string[]
  /** How many messages to the device are still to come. */
  outstanding(): number
}

const NAMES = {
  unstable: { toDevice: 'to_device', accountData: 'account_data', receipts: 'receipts', typing: 'typing' },
  merged: {
    toDevice: 'org.matrix.msc4538.to_device',
    accountData: 'org.matrix.msc4548.account_data',
    receipts: 'org.matrix.msc4551.receipts',
    typing: 'typing',
  },
}

export function createExtras({ form, person, world, hasToDevice, dice }: ChainParts): Extras {
  const names = NAMES[form]
  /** By room ('' for none) and type. */
  const accountData = new Map<string, Json>()
  const typing = new Map<string, string[]>()
  /** By room, user and kind. */
  const receipts = new Map<string, string>()
  const messages: number[] = []
  const sentToDevice = () => world.toDevice.get(person.deviceId) ?? []
  let since: string | undefined

  function takeReceipts(room: string, content: Json): void {
    for (const [eventId, kinds] of Object.entries<Json>(content)) {
      for (const [kind, users] of Object.entries<Json>(kinds)) {
        for (const user of Object.keys(users)) receipts.set(`${room} ${user} ${kind}`, eventId)
      }
    }
  }

  function checkReceipts({ id, receipts: right }: WorldRoom, room: KnownRoom | undefined): string[] {
    const problems: string[] = []
    for (const [name, eventId] of right) {
      const [user, kind] = name.split(' ') as [string, string]
      const received = receipts.get(`${id} ${name}`)
      const isOwn = user === person.userId
      if (kind === 'm.read.private' && !isOwn) {
        if (received !== undefined) problems.push(`a private receipt of ${user} in ${id}`)
      } else if (received === undefined ? isOwn || room?.knows(eventId) : received !== eventId) {
        problems.push(`receipt ${name} in ${id} is ${received}, should be ${eventId}`)
      }
    }
    return problems
  }

  function checkTyping({ id, typing: right, isTypingUnsure }: WorldRoom): string[] {
    if (isTypingUnsure) return []
    const received = (typing.get(id) ?? []).toSorted().join()
    return received === [...right].toSorted().join() ? [] : [`typing in ${id}: ${received}, should be ${[...right]}`]
  }

  return {
    request: () => ({
      [names.accountData]: { enabled: true },
      [names.receipts]: { enabled: true },
      [names.typing]: { enabled: true },
      ...(hasToDevice && { [names.toDevice]: { enabled: true, limit: 1 + dice.below(3), ...(since && { since }) } }),
    }),

    apply(extensions, rooms) {
      // Who begins with a room knows of nobody's receipts there.
      const begun = [...rooms].flatMap(([id, { isInitial }]) => (isInitial ? id : []))
      for (const name of receipts.keys()) if (begun.includes(name.split(' ')[0]!)) receipts.delete(name)
      const data = extensions[names.accountData] ?? {}
      for (const { type, content } of data.global ?? []) accountData.set(` ${type}`, content)
      for (const [room, events] of Object.entries<Json[]>(data.rooms ?? {})) {
        for (const { type, content } of events) accountData.set(`${room} ${type}`, content)
      }
      for (const [room, received] of Object.entries<Json>(extensions[names.typing]?.rooms ?? {})) {
        typing.set(room, form === 'merged' ? received.user_ids : received.content.user_ids)
      }
      for (const [room, received] of Object.entries<Json>(extensions[names.receipts]?.rooms ?? {})) {
        takeReceipts(room, form === 'merged' ? received : received.content)
      }
      const toDevice = extensions[names.toDevice]
      if (toDevice === undefined) return
      since = toDevice.next_batch ?? since
      for (const { content } of toDevice.events ?? []) messages.push(content.number)
    },

    check(scope, joined, known) {
      const problems = joined.flatMap((room) => [...checkReceipts(room, known.get(room.id)), ...checkTyping(room)])
      const inScope = new Set(['', ...scope.map(({ id }) => id)])
      for (const [name, content] of world.accountData) {
        const [user, room, type] = name.split(' ') as [string, string, string]
        if (user !== person.userId || !inScope.has(room)) continue
        const received = JSON.stringify(accountData.get(`${room} ${type}`))
        const right = JSON.stringify(content)
        if (received !== right) problems.push(`account data ${room} ${type} is ${received}, should be ${right}`)
      }
      if (!hasToDevice) return problems
      // Some may still be to come.
      const soFar = sentToDevice().slice(0, messages.length)
      if (messages.join() !== soFar.join()) problems.push(`to the device: ${messages}, should be ${soFar}`)
      return problems
    },

    outstanding: () => (hasToDevice ? sentToDevice().length - messages.length : 0),
  }
}
