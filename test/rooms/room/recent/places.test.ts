import { describe, expect, test } from 'vitest'
import { Places } from '../../../../src/domain/rooms/room/recent/places.ts'
import type { RoomEvent } from '../../../../src/domain/rooms/room/room-event.ts'

/** An event at a place; its other numbers follow from that. */
const event = (pos: number) => ({ nid: 1_000 + pos, pos, streamPos: 2_000 + pos, notifiable: 3_000 + pos }) as RoomEvent
const events = (from: number, upTo: number) =>
  Array.from({ length: upTo - from + 1 }, (_, index) => event(from + index))
const positions = (places: Places) =>
  places.between(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY).map(({ pos }) => pos)

function placesOf(from: number, upTo: number): Places {
  const places = new Places()
  for (const one of events(from, upTo)) places.push(one)
  return places
}

describe('the places of the newest events', () => {
  test('come back as they went in', () => {
    const places = placesOf(1, 5)
    expect(places.length).toBe(5)
    expect(places.at(1)).toEqual(event(2))
    expect(places.newest).toEqual(event(5))
    expect(places.findLast(({ streamPos }) => streamPos < 2_004)).toEqual(event(3))
    expect(places.findLast(() => false)).toBeUndefined()
    expect(places.between(1, 3)).toEqual(events(2, 3))
    expect(places.newestNids(2)).toEqual([1_004, 1_005])
    expect(places.newestNids(9)).toHaveLength(5)
    expect(new Places().newest).toBeUndefined()
  })

  test('are the newest ones, and no more than twice as many as are kept', () => {
    const places = placesOf(1, 128)
    expect(positions(places)).toHaveLength(128)
    places.push(event(129))
    expect(positions(places)).toEqual(events(66, 129).map(({ pos }) => pos))
  })

  test('are extended by older ones, of which the newest are kept', () => {
    const places = placesOf(101, 110)
    places.extend(events(1, 100))
    expect(positions(places)).toEqual(events(47, 110).map(({ pos }) => pos))
    expect(places.at(0)).toEqual(event(47))
  })

  test('begin after a place that they must not reach', () => {
    const places = placesOf(1, 10)
    places.keepAbove(7)
    expect(positions(places)).toEqual([8, 9, 10])
    places.keepAbove(20)
    expect(places.length).toBe(0)
  })

  test('may be larger than what the engine holds in a word', () => {
    const places = placesOf(2 ** 40, 2 ** 40 + 1)
    places.push(event(2 ** 40 + 2))
    expect(places.at(2)).toEqual(event(2 ** 40 + 2))
  })
})
