import { describe, expect, it } from 'vitest'
import type { SpaceChild } from '../../../../src/core/event/space-child.ts'
import type { RoomId } from '../../../../src/core/ids.ts'
import type { JsonObject } from '../../../../src/core/json.ts'
import {
  MAX_ROOMS_WALKED,
  MAX_SPACE_ANSWER_CHARS,
  MAX_SPACE_CHILDREN,
  MAX_SPACE_DEPTH,
  MAX_SPACE_PAGE,
  MAX_SPACE_PAGE_CHARS,
  MAX_SPACE_WAIT_MS,
} from '../../../../src/domain/limits/spaces.ts'
import { type Eyes, type Sight, walkTree } from '../../../../src/domain/rooms/act/spaces/tree.ts'

const ROOT = '!0:far.example.org' as RoomId
const ALL = { suggestedOnly: undefined, maxDepth: undefined, limit: undefined, from: undefined }
const clock = { now: () => 0 }
/** Rooms that are asked for ahead at each room, because they come next in the tree or on a later page. */
const AHEAD = 5

function childOf(name: string, padding = ''): SpaceChild {
  const roomId = `!${name}:far.example.org` as RoomId
  return { roomId, via: [], isSuggested: false, order: undefined, ts: 0, shown: { state_key: roomId, padding } }
}

/** Another server's spaces without end: each holds so many new ones. */
function endless(width: number, padding = ''): Eyes & { readonly asked: Map<string, number> } {
  const asked = new Map<string, number>()
  return {
    asked,
    here: async () => undefined,
    maySee: async () => true,
    async elsewhere(roomId): Promise<Sight> {
      asked.set(roomId, (asked.get(roomId) ?? 0) + 1)
      const name = roomId.slice(1, roomId.indexOf(':'))
      const children = Array.from({ length: width }, (_, place) => childOf(`${name}.${place}`, padding))
      return { summary: { room_id: roomId, room_type: 'm.space' }, children }
    },
  }
}

async function pagesOf(eyes: Eyes, limit?: number): Promise<JsonObject[][]> {
  const pages: JsonObject[][] = []
  for (let from: string | undefined; pages.length <= MAX_ROOMS_WALKED; ) {
    const { rooms, next_batch } = await walkTree(ROOT, { ...ALL, limit, from }, clock, eyes)
    pages.push(rooms as JsonObject[])
    if (next_batch === undefined) return pages
    from = next_batch as string
  }
  throw new Error('the pages have no end')
}

describe('a tree of other servers that has no end', () => {
  it('is walked as far as the limit of rooms, over all pages, and few others are asked for', async () => {
    const eyes = endless(100)
    const pages = await pagesOf(eyes)
    expect(pages.flat().length).toBe(MAX_ROOMS_WALKED)
    for (const rooms of pages) expect(rooms.length).toBeLessThanOrEqual(MAX_SPACE_PAGE)
    expect(eyes.asked.size).toBeLessThanOrEqual(MAX_ROOMS_WALKED + AHEAD * MAX_SPACE_DEPTH)
    // Depth first, and no deeper than that.
    const depths = pages.flat().map(({ room_id: id }) => (id as string).split('.').length - 3)
    expect(Math.max(...depths)).toBe(MAX_SPACE_DEPTH)
  })

  it('costs a page some requests for each room on it', async () => {
    const eyes = endless(MAX_SPACE_CHILDREN)
    await walkTree(ROOT, { ...ALL, limit: 5 }, clock, eyes)
    expect(eyes.asked.size).toBeLessThanOrEqual(5 + AHEAD * 5)
  })

  it('gives pages of limited size, and every room on one of them', async () => {
    const padding = 'x'.repeat(Math.floor(MAX_SPACE_ANSWER_CHARS / 4))
    const eyes = endless(4, padding)
    const first = await walkTree(ROOT, ALL, clock, eyes)
    const chars = JSON.stringify(first.rooms).length
    expect(chars).toBeGreaterThan(MAX_SPACE_PAGE_CHARS)
    expect(chars).toBeLessThan(MAX_SPACE_PAGE_CHARS + 2 * MAX_SPACE_ANSWER_CHARS)
    const second = await walkTree(ROOT, { ...ALL, from: first.next_batch as string }, clock, eyes)
    const ids = [...(first.rooms as JsonObject[]), ...(second.rooms as JsonObject[])].map(({ room_id: id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const asOne = await walkTree(ROOT, { ...ALL, limit: ids.length }, clock, endless(4))
    expect((asOne.rooms as JsonObject[]).map(({ room_id: id }) => id)).toEqual(ids)
  })

  it('is waited for so long and no longer: the rest is for the next page', async () => {
    let now = 0
    const eyes = endless(2)
    const slow: Eyes = {
      ...eyes,
      async elsewhere(...asked) {
        now += MAX_SPACE_WAIT_MS / 4
        return eyes.elsewhere(...asked)
      },
    }
    const { rooms, next_batch } = await walkTree(ROOT, ALL, { now: () => now }, slow)
    expect((rooms as JsonObject[]).length).toBeLessThan(10)
    expect(next_batch).toBeDefined()
  })
})
