import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { clock } from '../format.ts'
import { t } from '../words.ts'

/** A chart is as long as its line, and at least so long: a single point would stand in a year. */
const LEAST_SECONDS = 300

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

export interface ChartProps {
  readonly label: string
  /** Seconds since 1970. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
  readonly show: (value: number) => string
  readonly isBytes?: boolean
  /** Told which value somebody points at; undefined for none. */
  readonly point: (index: number | undefined) => void
}

function span(first: number | null, last: number | null): [from: number, to: number] {
  const to = last ?? Date.now() / 1000
  return [Math.min(first ?? to, to - LEAST_SECONDS), to]
}

/** Bytes are told in powers of two, so a scale of tens would show odd numbers. */
const BINARY_STEPS = Array.from({ length: 40 }, (_, power) => 2 ** power)

function optionsFor(size: { width: number; height: number }, { show, point, isBytes }: ChartProps): uPlot.Options {
  const axis = { stroke: colour('--soft'), ticks: { show: false }, font: '11px system-ui, sans-serif' }
  const ember = colour('--ember')
  return {
    ...size,
    padding: [8, 6, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7, fill: ember } },
    hooks: { setCursor: [({ cursor }) => point(cursor.idx ?? undefined)] },
    scales: {
      x: { range: (_chart, first, last) => span(first, last) },
      y: { range: (_chart, _low, high) => [0, Math.max(high * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 22,
        space: 70,
        values: (_chart, all) => all.map((at) => clock(at * 1000)),
      },
      {
        ...axis,
        grid: { stroke: colour('--line'), width: 1 },
        size: 56,
        space: 34,
        values: (_chart, all) => all.map(show),
        ...(isBytes && { incrs: BINARY_STEPS }),
      },
    ],
    series: [{}, { stroke: ember, fill: colour('--wash'), width: 2, points: { show: false }, spanGaps: true }],
  }
}

/** One line over time. What it says is also said in words, for those who do not see it. */
export function Chart(props: ChartProps) {
  const { label, times, values, show, point } = props
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | undefined>(undefined)
  const newest = useRef({ times, values })
  newest.current = { times, values }

  useEffect(() => {
    const element = place.current
    if (element === null) return
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    function draw(): void {
      chart.current?.destroy()
      chart.current = new uPlot(optionsFor(sizeOf(element!), props), dataOf(newest.current), element!)
    }
    draw()
    const sizes = new ResizeObserver(() => chart.current?.setSize(sizeOf(element)))
    sizes.observe(element)
    scheme.addEventListener('change', draw)
    return () => {
      sizes.disconnect()
      scheme.removeEventListener('change', draw)
      chart.current?.destroy()
      chart.current = undefined
    }
  }, [show, point])

  useEffect(() => chart.current?.setData(dataOf({ times, values })), [times, values])

  const known = values.filter((value) => value !== null)
  const words =
    known.length === 0
      ? t('no figures yet')
      : t('now {value}, at most {most}', { value: show(known.at(-1)!), most: show(Math.max(...known)) })
  return <div ref={place} class="chart" role="img" aria-label={`${label}: ${words}`} />
}

const sizeOf = ({ clientWidth: width, clientHeight: height }: HTMLElement) => ({ width, height })

function dataOf({ times, values }: Pick<ChartProps, 'times' | 'values'>): uPlot.AlignedData {
  return [[...times], [...values]]
}
