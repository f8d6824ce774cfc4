import { describe, expect, it } from 'vitest'
import { compileGlob, compileWildcard, compileWordGlob } from '../../src/core/glob.ts'

describe('globs (appendices, glob-style matching)', () => {
  it.each([
    ['lunc?*', 'Lunch plans', true],
    ['lunc?*', 'LUNCH', true],
    ['lunc?*', ' lunch', false],
    ['lunc?*', 'lunc', false],
    ['', '', true],
    ['', 'a', false],
    ['*', '', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['*.evil.example', 'EVIL.example', false],
    ['*.evil.example', 'very.evil.example', true],
    ['a?c', 'a😀c', true],
    ['a??c', 'a😀c', false],
    ['*b?d*', 'aabcbxd', true],
    ['[a-z]', 'b', false],
    ['a.c', 'abc', false],
  ])('%j on %j: %s', (glob, text, matches) => {
    expect(compileGlob(glob)(text)).toBe(matches)
  })
})

describe('word globs (push rules, content.body)', () => {
  it.each([
    ['ex*ple', 'An example event.', true],
    ['ex*ple', 'exple', true],
    ['ex*ple', 'An exciting triple-whammy', true],
    ['ex*ple', 'an examplex', false],
    ['cake', 'cakes', false],
    ['cake', 'pancake', false],
    ['cake', 'pancake cake', true],
    ['cake', 'CAKE!', true],
    ['cake', '_cake_', false],
    ['@room', 'hello @room.', true],
    ['c?ke', 'the coke', true],
    ['*ake', 'pancake', true],
    ['ca*', 'cakes', true],
    ['ca*', 'pancakes', false],
    ['李', '你好李明', true],
    ['aa a', 'aaa aa a', true],
  ])('%j on %j: %s', (glob, text, matches) => {
    expect(compileWordGlob(glob)(text)).toBe(matches)
  })
})

describe('word boundaries', () => {
  it.each([...'azAZ09_'])('%j is part of a word', (character) => {
    expect(compileWordGlob('cake')(`cake${character}`)).toBe(false)
    expect(compileWordGlob('cake')(`${character}cake`)).toBe(false)
  })
  it.each([...'`{@[/:-é😀'])('%j is not', (character) => {
    expect(compileWordGlob('cake')(`cake${character}`)).toBe(true)
    expect(compileWordGlob('cake')(`${character}cake`)).toBe(true)
  })
})

describe('wildcards (filters)', () => {
  it.each([
    ['m.room.*', 'm.room.message', true],
    ['m.room.*', 'm.roomy', false],
    ['m.?', 'm.a', false],
    ['m.?*', 'm.?a', true],
    ['M.room', 'm.room', false],
  ])('%j on %j: %s', (wildcard, text, matches) => {
    expect(compileWildcard(wildcard)(text)).toBe(matches)
  })
})

describe('hostile patterns', () => {
  const body = 'a'.repeat(60_000)
  it.each([
    ['10,000 stars', '*'.repeat(10_000), 5],
    ['10,000 starred letters', 'a*'.repeat(10_000), 50],
    ['a near miss over and over', `*${'a'.repeat(30_000)}b*`, 50],
    ['a near miss with marks', `*${'a?'.repeat(60)}b*`, 100],
    ['10,000 starred marks', `${'?*'.repeat(10_000)}b`, 50],
  ])('%s', (_name, glob, limitMs) => {
    for (const compile of [compileGlob, compileWordGlob]) {
      const tookMs = Array.from({ length: 5 }, () => {
        const start = performance.now()
        compile(glob)(body)
        return performance.now() - start
      })
      expect(Math.min(...tookMs)).toBeLessThan(limitMs)
    }
  })

  it('a piece with marks is searched for up to its bound', () => {
    const piece = 'a?'.repeat(64)
    expect(compileGlob(`*${piece}*`)(body)).toBe(true)
    expect(compileGlob(`*${piece}a*`)(body)).toBe(false)
    expect(compileGlob(`${piece}a*`)(body)).toBe(true)
  })
})
