import { describe, expect, test } from 'vitest'
import { placeAfter, whyBroken } from '../../../src/core/backup/log-place.ts'

const piece = (branch: number, place: number): string =>
  [branch, Math.floor(place / 256), place % 256].map((n) => n.toString(16).toUpperCase().padStart(8, '0')).join('')

describe('a log', () => {
  test.each([
    ['0000000000000009', '000000000000000A'],
    ['00000000000000FF', '0000000100000000'],
    ['00000001000000FF', '0000000200000000'],
    ['0000000F000000FF', '0000001000000000'],
  ])('goes on after %s at %s', (place, next) => {
    expect(placeAfter(place)).toBe(next)
  })

  test('leads to its end if no piece is missing, whatever lies before the copy and however the names come', () => {
    const names = [258, 255, 257, 256, 3].map((place) => piece(1, place))
    const others = ['00000002.history', `${piece(1, 255)}.00000028.backup`]
    expect(whyBroken([...names, ...others], piece(1, 255))).toBeUndefined()
  })

  test('is broken at the first piece that is missing', () => {
    expect(whyBroken([piece(1, 5), piece(1, 6), piece(1, 9), piece(1, 11)], piece(1, 5))).toEqual({
      missing: piece(1, 7).slice(8),
    })
    expect(whyBroken([piece(1, 6)], piece(1, 5))).toEqual({ missing: piece(1, 5).slice(8) })
  })

  test('is followed along its newest branch, for which pieces of the older one do not stand in', () => {
    const older = [5, 6, 7, 8, 9].map((place) => piece(1, place))
    expect(whyBroken([...older, piece(2, 7), piece(2, 8), piece(2, 9)], piece(1, 5))).toBeUndefined()
    expect(whyBroken([...older, piece(2, 7), piece(2, 9)], piece(1, 5))).toEqual({ missing: piece(2, 8).slice(8) })
    // Or it has not come as far yet as the older one was.
    expect(whyBroken([...older, piece(2, 7)], piece(1, 5))).toBeUndefined()
  })

  test('that went back to before a copy does not go on from there', () => {
    expect(whyBroken([piece(1, 5), piece(1, 6), piece(2, 3), piece(2, 4)], piece(1, 5))).toBe('left behind')
    expect(whyBroken([piece(2, 5), piece(2, 6), piece(1, 3)], piece(2, 5))).toBeUndefined()
  })
})
