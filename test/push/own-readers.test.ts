import { beforeEach, describe, expect, it } from 'vitest'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import type { UserId } from '../../src/core/ids.ts'
import { type CompiledRules, compileRuleset, withoutSenders } from '../../src/core/push/compiled-rules.ts'
import { createOwnReaders, type OwnReaders, type OwnReadersOf } from '../../src/domain/push/own-readers.ts'
import { createRuleNews } from '../../src/domain/push/rule-news.ts'
import type { LocalMember, Room } from '../../src/domain/rooms/room/room.ts'

const MEMBERS = 100

let news: ReturnType<typeof createRuleNews>
let rules: Map<number, CompiledRules>
let asked: number[]
let localMembers: Map<number, LocalMember>
let mentionables: object
let readers: OwnReadersOf

const keyword = (pattern: string) =>
  compileRuleset({ own: { content: [{ id: 'word', pattern, actions: ['notify'] }] }, changes: {} })

function change(userNid: number, to: CompiledRules): void {
  rules.set(userNid, to)
  news.add(userNid)
}

function enter(userNid: number, displayName?: string): void {
  localMembers.set(userNid, { userNid, userId: `@user${userNid}:x.example` as UserId, displayName, since: 1 })
  mentionables = {}
}

/** The readers, and whose rules were asked for to know them. */
function look(): [OwnReaders, number[]] {
  asked = []
  const room = { nid: 1, id: '!room:x.example', localMembers, mentionables: () => mentionables } as unknown as Room
  const found = readers.of(room)
  if (!('byNid' in found)) throw new Error('rules are missing')
  return [found, asked]
}

const sizes = ({ groups }: OwnReaders) => [...groups].map(({ readers: { size } }) => size).sort((a, b) => a - b)

beforeEach(() => {
  news = createRuleNews()
  rules = new Map()
  localMembers = new Map()
  const pushRules = {
    peek(userNid: number) {
      asked.push(userNid)
      return rules.get(userNid)
    },
    of: (userNid: number) => rules.get(userNid)!,
    load: async () => {},
    hasOwn: (userNid: number) => rules.has(userNid),
    version: news.version,
    changedSince: news.since,
  }
  readers = createOwnReaders({ pushRules, budget: new ByteBudget(10_000_000) })
  for (let userNid = 1; userNid <= MEMBERS; userNid++) {
    enter(userNid)
    change(userNid, keyword(userNid % 2 === 0 ? 'kettle' : 'Kessel'))
  }
})

describe('the members of a room who have rules of their own', () => {
  it('are in one group where their rules do the same', () => {
    const [found, all] = look()
    expect([found.byNid.size, all.length, sizes(found)]).toEqual([MEMBERS, MEMBERS, [50, 50]])
    expect(look()[1]).toEqual([])
  })

  it('go from group to group as rules change, and the others are not looked at', () => {
    look()
    change(7, keyword('kettle'))
    expect([sizes(look()[0]), asked]).toEqual([[49, 51], [7]])
    change(7, keyword('stove'))
    change(8, keyword('stove'))
    expect([sizes(look()[0]), asked]).toEqual([
      [2, 49, 49],
      [7, 8],
    ])
    rules.delete(7)
    news.add(7)
    expect([sizes(look()[0]), look()[0].byNid.has(7)]).toEqual([[1, 49, 49], false])
  })

  it('come, go and take other names, and the others are not looked at', () => {
    look()
    rules.set(200, keyword('kettle'))
    enter(200)
    enter(3, 'Ann')
    localMembers.delete(4)
    const [found] = look()
    expect([sizes(found), asked.toSorted((a, b) => a - b)]).toEqual([
      [50, 50],
      [3, 200],
    ])
    expect([found.byNid.get(3)?.member.displayName, found.byNid.has(4)]).toEqual(['Ann', false])
  })

  it('are looked at once where their rules are as the default ones in the room', () => {
    const elsewhere = () => compileRuleset({ own: { room: [{ id: '!other:x.example', actions: [] }] }, changes: {} })
    for (const userNid of [10, 11, 12]) change(userNid, elsewhere())
    expect([look()[0].byNid.size, asked.length]).toEqual([MEMBERS - 3, MEMBERS])
    enter(3, 'Ann')
    expect(look()[1]).toEqual([3])
    // Their rules may have changed while they were away.
    localMembers.delete(10)
    mentionables = {}
    look()
    rules.set(10, keyword('kettle'))
    enter(10)
    expect([look()[0].byNid.has(10), asked]).toEqual([true, [10]])
    change(11, keyword('kettle'))
    expect([look()[0].byNid.size, asked]).toEqual([MEMBERS - 1, [11]])
  })

  it('are looked at again if it is unknown who changed', () => {
    look()
    news.missed()
    expect(look()[1]).toHaveLength(MEMBERS)
    for (let changes = 0; changes < 5_000; changes++) news.add(1_000)
    expect(look()[1]).toHaveLength(MEMBERS)
  })

  it('are deaf to those whom they ignore, from then until they cease to', () => {
    const spammer = '@spam:x.example' as UserId
    expect(look()[0].deafTo(spammer).all.size).toBe(0)
    change(5, withoutSenders(keyword('Kessel'), new Set([spammer])))
    expect([...look()[0].deafTo(spammer).all]).toEqual([5])
    expect(sizes(look()[0])).toEqual([50, 50])
    change(5, keyword('Kessel'))
    expect(look()[0].deafTo(spammer).all.size).toBe(0)
  })
})
