import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

const HEIGHT = 120

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

export interface ChartProps {
  readonly label: string
  /** Seconds since 1970. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
  readonly show: (value: number) => string
}

/** One line over time. What it says is also said in words, for those who do not see it. */
export function Chart({ label, times, values, show }: ChartProps) {
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
      const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
      const font = '11px system-ui, sans-serif'
      chart.current = new uPlot(
        {
          width: element!.clientWidth,
          height: HEIGHT,
          padding: [8, 6, 0, 0],
          legend: { show: false },
          cursor: { show: false },
          scales: { y: { range: (_chart, _low, high) => [0, Math.max(high * 1.1, 1)] } },
          axes: [
            { ...axis, grid: { show: false }, font, size: 22, space: 80 },
            { ...axis, font, size: 52, space: 34, values: (_chart, splits) => splits.map(show) },
          ],
          series: [
            {},
            { stroke: colour('--ember'), fill: colour('--wash'), width: 2, points: { show: false }, spanGaps: true },
          ],
        },
        dataOf(newest.current),
        element!,
      )
    }
    draw()
    const sizes = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height: HEIGHT }))
    sizes.observe(element)
    scheme.addEventListener('change', draw)
    return () => {
      sizes.disconnect()
      scheme.removeEventListener('change', draw)
      chart.current?.destroy()
      chart.current = undefined
    }
  }, [show])

  useEffect(() => chart.current?.setData(dataOf({ times, values })), [times, values])

  const known = values.filter((value) => value !== null)
  const words =
    known.length === 0 ? 'no figures yet' : `now ${show(known.at(-1)!)}, at most ${show(Math.max(...known))}`
  return <div ref={place} class="chart" role="img" aria-label={`${label}: ${words}`} />
}

function dataOf({ times, values }: Pick<ChartProps, 'times' | 'values'>): uPlot.AlignedData {
  return [[...times], [...values]]
}
