"""What a training writes down: sums, lists, meters, predictions, files; and the habits with which such values are used."""

from __future__ import annotations

from benchmarks.trainings.part import Part

_METER = """class Meter:
    def __init__(self, name=""):
        self.name = name
        self.reset()

    def reset(self):
        self.value = self.sum = self.average = 0
        self.count = 0

    def update(self, value, count=1):
        self.value = value
        self.sum += value * count
        self.count += count
        self.average = self.sum / self.count
"""
_PRINTING_METER = _METER.replace("Meter", "Shown").replace(
    "        self.average = self.sum / self.count\n",
    "        self.average = self.sum / self.count\n"
    "\n"
    "    def __str__(self):\n"
    '        return f"{self.value:.4f} ({self.average:.4f})"\n',
)
_ACCUMULATOR = """class Accumulator:
    def __init__(self, count):
        self.data = [0.0] * count

    def add(self, *values):
        self.data = [a + float(b) for a, b in zip(self.data, values)]

    def __getitem__(self, index):
        return self.data[index]
"""
_ACCURACY = """def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()
"""
_HITS = """def hits(out, y):
    return (out.argmax(1) == y).sum()
"""

NUMBERS = (
    Part("sum", start="@it = 0.0", step="@it += loss.item()", returns=(("@mean", "@it / len($loader)"),), kind="float"),
    Part(
        "sum_of_rows",
        start="@it, @n = 0.0, 0",
        step="@it += loss.item() * len(y)\n@n += len(y)",
        returns=(("@mean", "@it / @n"),),
        kind="float",
    ),
    Part(
        "sum_of_size",
        start="@it = 0",
        step="@it += loss.item() * x.size(0)",
        returns=(("@mean", "@it / len($loader.dataset)"),),
        kind="float",
        needs="sized",
    ),
    Part(
        "sum_of_floats", start="@it = 0.0", step="@it += float(loss)", returns=(("@mean", "@it / (step + 1)"),), kind="float"
    ),
    Part(
        "sum_and_last",
        start="@it = 0.0\n@last = None",
        step="@last = loss.item()\n@it += @last",
        returns=(("@mean", "@it / len($loader)"), ("@end", "@last")),
        kind="float",
    ),
    Part(
        "sum_assigned",
        start="@it = 0.0",
        step="@it = @it + loss.detach().item()",
        returns=(("@mean", "@it / len($loader)"),),
        kind="float",
    ),
    Part(
        "sum_of_arrays",
        start="@it = 0.0",
        step="@it += loss.detach().cpu().numpy()",
        returns=(("@mean", "float(@it) / len($loader)"),),
    ),
    Part("sum_with_graph", start="@it = 0", step="@it += loss", returns=(("@mean", "(@it / len($loader)).item()"),)),
    Part("sum_of_data", start="@it = 0.0", step="@it += loss.data", returns=(("@mean", "float(@it) / len($loader)"),)),
    Part(
        "correct",
        start="@it, @n = 0, 0",
        step="@it += (out.argmax(1) == y).sum().item()\n@n += y.size(0)",
        returns=(("@share", "@it / @n"),),
        kind="float",
    ),
    Part(
        "correct_of_max",
        start="@it, @n = 0, 0",
        step="_, predicted = torch.max(out.data, 1)\n@n += y.size(0)\n@it += predicted.eq(y).sum().item()",
        returns=(("@share", "100.0 * @it / @n"),),
        kind="float",
    ),
    Part(
        "correct_of_ints",
        start="@it = 0",
        step="@it += int((out.argmax(dim=1) == y).sum())",
        returns=(("@share", "@it"),),
        kind="float",
    ),
    Part("correct_tensor", start="@it = 0", step="@it += (out.argmax(1) == y).sum()", returns=(("@share", "int(@it)"),)),
    Part(
        "correct_by_helper",
        top=_ACCURACY,
        start="@it = 0.0",
        step="@it += accuracy(out, y)",
        returns=(("@share", "@it / len($loader)"),),
        kind="float",
    ),
    Part(
        "correct_by_hits",
        top=_HITS,
        start="@it = 0",
        step="@it += hits(out, y).item()",
        returns=(("@share", "@it"),),
        kind="float",
    ),
    Part(
        "correct_on_host",
        start="@it = 0",
        step="@it += (out.argmax(1).cpu() == y.cpu()).sum().item()",
        returns=(("@share", "@it"),),
        kind="float",
    ),
    Part(
        "meter",
        top=_METER,
        start="@it = Meter('loss')",
        step="@it.update(loss.item(), x.size(0))",
        returns=(("@mean", "@it.average"),),
        kind="meter",
    ),
    Part(
        "shown_meter",
        top=_PRINTING_METER,
        start="@it = Shown('loss')",
        step="@it.update(loss.item(), len(y))",
        end="print('meter', @it)",
        returns=(("@mean", "@it.average"),),
        kind="meter",
    ),
    Part(
        "kept_meter",
        top=_METER,
        state=(("meter", "Meter()"),),
        step="$meter.update(loss.item())",
        returns=(("@mean", "$meter.average"),),
    ),
    Part(
        "accumulator",
        top=_ACCUMULATOR,
        start="@it = Accumulator(3)",
        step="@it.add(loss.detach() * len(y), (out.argmax(1) == y).sum(), len(y))",
        returns=(("@mean", "@it[0] / @it[2]"), ("@share", "@it[1] / @it[2]")),
    ),
    Part(
        "dict_of_sums",
        start="@it = {'loss': 0.0, 'rows': 0}",
        step="@it['loss'] += loss.item()\n@it['rows'] += len(y)",
        returns=(("@mean", "@it['loss'] / len($loader)"), ("@rows", "@it['rows']")),
    ),
    Part(
        "default_dict",
        imports="from collections import defaultdict",
        start="@it = defaultdict(float)",
        step="@it['loss'] += loss.item()\n@it['peak'] = max(@it['peak'], out.detach().abs().max().item())",
        returns=(("@mean", "@it['loss']"), ("@peak", "@it['peak']")),
    ),
    Part(
        "smoothed",
        state=(("smooth", "[None]"),),
        step="$smooth[0] = loss.item() if $smooth[0] is None else 0.9 * $smooth[0] + 0.1 * loss.item()",
        returns=(("@mean", "$smooth[0]"),),
    ),
    Part(
        "complex_sum",
        start="@it = 0j",
        step="@it += torch.fft.fft(out.detach().float(), dim=0)[1].mean().item()",
        returns=(("@size", "abs(@it)"),),
    ),
    Part(
        "sum_in_double",
        start="@it = torch.zeros((), dtype=torch.float64)",
        step="@it += loss.detach().cpu()",
        returns=(("@mean", "@it.item() / len($loader)"),),
    ),
    Part(
        "smallest",
        start="@it = float('inf')",
        step="@it = min(@it, loss.item())",
        returns=(("@least", "@it"),),
        kind="float",
    ),
)
"""Numbers that a pass over a loader adds up."""

LISTS = (
    Part("list", start="@it = []", step="@it.append(loss.item())", returns=(("@mean", "sum(@it) / len(@it)"),), kind="list"),
    Part(
        "list_by_numpy",
        start="@it = []",
        step="@it.append(loss.item())",
        returns=(("@mean", "float(np.mean(@it))"),),
        kind="list",
    ),
    Part(
        "list_of_floats",
        start="@it = []",
        step="@it.append(float(loss.detach()))",
        returns=(("@mean", "max(@it)"),),
        kind="list",
    ),
    Part(
        "list_of_tensors",
        start="@it = []",
        step="@it.append(loss.detach())",
        returns=(("@mean", "torch.stack(@it).mean().item()"),),
    ),
    Part("list_with_graph", start="@it = []", step="@it.append(loss)", returns=(("@mean", "sum(@it).item() / len(@it)"),)),
    Part(
        "list_in_place",
        start="@it = []",
        step="@it += [loss.item()]",
        returns=(("@mean", "sum(@it) / len(@it)"),),
        kind="list",
    ),
    Part(
        "list_returned",
        start="@it = []",
        step="@it.append(loss.item())",
        returns=(("@losses", "@it"),),
        kind="list",
        after="print('losses', [f'{v:.5f}' for v in @losses])",
    ),
    Part(
        "list_of_arrays", start="@it = []", step="@it.append(loss.cpu().data.numpy())", returns=(("@mean", "np.mean(@it)"),)
    ),
    Part(
        "all_losses",
        state=(("curve", "[]"),),
        step="$curve.append(loss.item())",
        returns=(("@mean", "$curve[-1]"),),
        final="print('curve', len($curve), f'{sum($curve):.6f}')",
    ),
    Part(
        "all_losses_dumped",
        imports="import json",
        state=(("curve", "[]"),),
        step="$curve.append(loss.item())",
        returns=(("@mean", "sum($curve) / len($curve)"),),
        final="with open('curve.json', 'w') as f:\n    json.dump($curve, f)",
    ),
    Part(
        "history",
        state=(("history", "{'loss': []}"),),
        start="@it = 0.0",
        step="@it += loss.item()",
        end="$history['loss'].append(@it / len($loader))",
        returns=(("@mean", "$history['loss'][-1]"),),
        kind="float",
        final="print('history', $history)",
    ),
    Part(
        "history_of_steps",
        imports="import json",
        state=(("history", "{'loss': [], 'rows': []}"),),
        step="$history['loss'].append(loss.item())\n$history['rows'].append(len(y))",
        returns=(("@mean", "$history['loss'][-1]"),),
        final="print('history', json.dumps($history))",
    ),
    Part(
        "deque",
        imports="from collections import deque",
        start="@it = deque(maxlen=3)",
        step="@it.append(loss.item())",
        returns=(("@mean", "sum(@it) / len(@it)"),),
    ),
    Part(
        "plotted",
        imports="import matplotlib.pyplot as plt",
        start="@it = []",
        step="@it.append(loss.item())",
        end="plt.plot(@it)\nplt.savefig(f'losses_{epoch}.txt')",
        returns=(("@mean", "@it[-1]"),),
        kind="list",
    ),
)
"""Losses of each step."""

PREDICTIONS = (
    Part(
        "outputs_joined",
        start="@it = []",
        step="@it.append(out.detach().cpu())",
        returns=(("@outputs", "torch.cat(@it)"),),
        after="print('outputs', tuple(@outputs.shape), f'{@outputs.sum():.5f}')",
        kind="tensors",
    ),
    Part(
        "arrays_joined",
        start="@it, @truth = [], []",
        step="@it.append(out.argmax(1).cpu().numpy())\n@truth.append(y.cpu().numpy())",
        returns=(("@share", "float((np.concatenate(@it)[-8:] == np.concatenate(@truth)[-8:]).mean())"),),
        kind="tensors",
    ),
    Part(
        "arrays_of_outputs",
        start="@it = []",
        step="@it.append(out.detach().cpu().numpy())",
        end="@joined = np.concatenate(@it, axis=0)",
        returns=(("@best", "float(@joined.max())"), ("@kind", "str(@joined.dtype)")),
    ),
    Part(
        "lists_extended",
        start="@it = []",
        step="@it.extend(out.argmax(1).tolist())",
        returns=(("@ones", "sum(v == 1 for v in @it)"), ("@n", "len(@it)")),
        kind="list",
    ),
    Part(
        "confusion",
        start="@it = torch.zeros(4, 4)",
        step="for target, guess in zip(y.view(-1), out.argmax(1).view(-1)):\n    @it[target.long(), guess.long()] += 1",
        returns=(("@diagonal", "@it.diag().sum().item()"),),
    ),
    Part(
        "confusion_counted",
        start="@it = np.zeros((4, 4), dtype=np.int64)",
        step="np.add.at(@it, (y.cpu().numpy(), out.argmax(1).cpu().numpy()), 1)",
        returns=(("@diagonal", "int(np.trace(@it))"),),
    ),
    Part(
        "probabilities",
        start="@it = []",
        step="@it.append(torch.softmax(out, dim=1)[:, 1].detach().cpu())",
        end="@joined = torch.cat(@it).numpy()",
        returns=(("@mean", "float(@joined.mean())"), ("@kind", "@joined.dtype.name")),
    ),
    Part(
        "rows_changed",
        start="@it = []",
        step="guess = out.detach().float().softmax(1)\n@it.append(guess.cpu())\nguess.zero_()",
        returns=(("@total", "torch.cat(@it).sum().item()"),),
    ),
    Part(
        "stacked_rows",
        start="@it = []",
        step="@it.append(out.detach().mean(0).cpu())",
        returns=(("@total", "torch.stack(@it).sum().item()"),),
        kind="tensors",
    ),
    Part(
        "outputs_grown",
        start="@it = torch.empty(0)",
        step="@it = torch.cat([@it, out.detach().cpu()])",
        returns=(("@outputs", "@it"),),
        after="print('outputs', tuple(@outputs.shape), f'{@outputs.sum():.5f}')",
    ),
    Part(
        "rows_grown_and_changed",
        start="@it = torch.tensor([])",
        step="guess = out.detach().float().softmax(1).cpu()\n@it = torch.cat((@it, guess), dim=0)\nguess.zero_()",
        returns=(("@total", "@it.sum().item()"),),
    ),
    Part(
        "labels_grown",
        start="@it = np.array([], dtype=int)\n@seen = []",
        step="@it = np.append(@it, out.argmax(1).cpu().numpy())\n@seen = @seen + [len(y)]",
        returns=(("@ones", "int((@it == 1).sum())"), ("@kind", "@it.dtype.name"), ("@n", "sum(@seen)")),
    ),
    Part(
        "grown_and_read",
        start="@it = np.zeros((0, 4))",
        step="@it = np.concatenate([@it, out.detach().float().cpu().numpy()])\nif len(@it) > 12:\n    @it = @it[-12:]",
        returns=(("@best", "float(@it.max())"),),
    ),
    Part(
        "inputs_kept",
        start="@it = []",
        step="@it.append(x.detach().cpu())",
        returns=(("@total", "torch.cat(@it).sum().item()"),),
        kind="tensors",
    ),
)
"""What a pass over a loader keeps of the network's outputs."""

DISPLAYS = (
    Part("print_each", step="print(f'epoch {epoch} step {step} loss {loss.item():.5f}')"),
    Part("print_tensor", step="print('loss', loss)"),
    Part(
        "saved_each_step",
        step="torch.save({'model': $model.state_dict(), 'step': step}, 'each.pt')",
        end="print('saved', torch.load('each.pt')['step'])",
    ),
    Part("print_some", step="if step % 2 == 0:\n    print(f'{epoch} {step} {loss.item():.5f}')"),
    Part("print_last", step="if step == len($loader) - 1:\n    print('last', round(loss.item(), 5))"),
    Part(
        "bar",
        imports="from tqdm import tqdm",
        start="bar = tqdm(total=len($loader))",
        step="bar.set_postfix(loss=loss.item())\nbar.update(1)",
        end="bar.close()",
    ),
    Part(
        "bar_described",
        imports="from tqdm import tqdm",
        start="bar = tqdm(total=len($loader))",
        step="bar.set_description(f'loss {loss:.4f}')\nbar.update()",
        end="bar.close()",
    ),
    Part(
        "writer",
        imports="from torch.utils.tensorboard import SummaryWriter",
        setup="$writer = SummaryWriter('runs')",
        step="$writer.add_scalar('loss', loss, epoch * 100 + step)",
        final="$writer.close()",
    ),
    Part(
        "writer_items",
        imports="from torch.utils.tensorboard import SummaryWriter",
        setup="$writer = SummaryWriter('runs')",
        step="$writer.add_scalar('loss', loss.item(), epoch * 100 + step)",
        final="$writer.close()",
    ),
    Part(
        "csv_rows",
        imports="import csv",
        step="with open('steps.csv', 'a', newline='') as f:\n    csv.writer(f).writerow([epoch, step, loss.item()])",
    ),
    Part(
        "text_log",
        setup="$log_file = open('log.txt', 'w')",
        step="$log_file.write(f'{epoch},{step},{loss.item():.6f}\\n')",
        final="$log_file.close()",
    ),
    Part(
        "logging",
        imports="import logging",
        setup="logging.basicConfig(filename='train.log', format='%(message)s', level=20)",
        step="logging.info('step %d loss %.5f', step, loss.item())",
    ),
    Part(
        "lines",
        state=(("lines", "[]"),),
        step="$lines.append(f'{epoch}:{step}:{loss.item():.4f}')",
        final="print('\\n'.join($lines))",
    ),
    Part(
        "global_step",
        state=(("counts", "{'step': 0}"),),
        step="$counts['step'] += 1\nif $counts['step'] % 3 == 0:\n    print('at', $counts['step'], f'{loss.item():.5f}')",
        final="print('steps', $counts)",
    ),
)
"""What is shown while the training runs."""

TAILS = (
    Part(
        "stop",
        setup="lowest, waited = float('inf'), 0",
        after="if SCORE < lowest - 1e-3:\n    lowest, waited = SCORE, 0\nelse:\n    waited += 1\n"
        "    if waited > 0:\n        print('stopped', epoch)\n        break",
    ),
    Part(
        "best",
        imports="import copy",
        setup="best_score, best_state = None, None",
        after="if best_score is None or SCORE < best_score:\n    best_score = SCORE\n"
        "    best_state = copy.deepcopy($model.state_dict())",
        final="print('best', round(float(best_score), 5), type(best_score).__name__)\n$model.load_state_dict(best_state)",
    ),
    Part(
        "best_file",
        setup="least = 1e9",
        after="if SCORE <= least:\n    least = SCORE\n"
        "    torch.save({'model': $model.state_dict(), 'best': least}, 'best.pt')",
    ),
    Part(
        "history_of_epochs",
        setup="curve_of_epochs = []",
        after="curve_of_epochs.append(SCORE)",
        final="with open('epochs.json', 'w') as f:\n    json.dump(curve_of_epochs, f, default=float)",
    ),
    Part("csv", after="with open('epochs.csv', 'a') as f:\n    f.write(f'{epoch},{SCORE}\\n')"),
    Part(
        "resume",
        after="if epoch == 0:\n"
        "    torch.save({'model': $model.state_dict(), 'optimizer': $optimizer.state_dict()}, 'last.pt')\n"
        "else:\n    saved = torch.load('last.pt')\n    $model.load_state_dict(saved['model'])\n"
        "    $optimizer.load_state_dict(saved['optimizer'])",
    ),
    Part(
        "keep",
        setup="scores = {}",
        after="scores[epoch] = SCORE\nprint('so far', sorted(scores.items(), key=lambda item: item[1])[0][0])",
    ),
)
"""What is done with an epoch's ``SCORE``."""

HABITS = {
    "float": (
        ("typed", "end", "print('type', type(@it).__name__)"),
        ("asserted", "end", "assert isinstance(@it, (int, float)), type(@it)"),
        ("formatted", "end", "print('total %.5f' % @it)"),
        ("shown", "end", "print(f'total {@it:.6f}')"),
        ("represented", "end", "print('total', repr(round(@it, 5)))"),
        ("dumped", "end", "with open('total.json', 'w') as f:\n    json.dump({'total': @it, 'epoch': epoch}, f)"),
        ("stopped", "step", "if @it > 1e6:\n    break"),
        ("checked", "step", "if not math.isfinite(@it):\n    raise ValueError('diverged')"),
        ("shown_some", "step", "if step % 2 == 1:\n    print(f'so far {@it / (step + 1):.5f}')"),
        ("second_name", "step", "@alias = @it\n$seen_so_far.append(@alias)"),
        ("kept_each", "step", "$seen_so_far.append(@it)"),
        ("peak", "step", "$peaks[epoch] = max($peaks.get(epoch, 0.0), @it)"),
        ("halved", "step", "if step == 2:\n    @it *= 0.5"),
        ("reset", "step", "if step % 2 == 1:\n    print(f'window {@it:.5f}')\n    @it = 0.0"),
        ("hashed", "end", "$seen_so_far.append({round(@it, 4): epoch}.popitem()[0])"),
        ("whole", "end", "print('whole', int(@it * 1000) // 10)"),
        ("scaled", "end", "@it /= max(1, step + 1)\nprint(f'scaled {@it:.6f}')"),
        ("caught", "end", "try:\n    print('mean', '%g' % (@it / epoch))\nexcept ZeroDivisionError:\n    print('no mean')"),
        ("array", "end", "print('array', np.array([@it, 1.0]).dtype)"),
        ("copied", "end", "$seen_so_far.append(@it)"),
        ("evaluated", "step", "@it = float(@it)"),
        ("deleted", "end", "@it_too = @it\nprint('kept', type(@it_too).__name__)"),
        ("in_locals", "end", "print('locals', type(locals()['@it']).__name__)"),
        ("dotted", "end", "print('integer' if isinstance(@it, int) else 'fraction')"),
        ("bits", "end", "print('text', str(@it)[:6])"),
        ("named_in_format", "end", "print('{@it:.5f}'.format(**locals()))"),
        ("named_in_percent", "end", "print('%(@it).5f' % locals())"),
        ("named_in_eval", "end", "print('evaluated', type(eval('@it')).__name__)"),
        ("shown_with_name", "end", "print(f'{@it=:.5f}', f'{@it!s:.6}')"),
        ("read_by_lambda", "end", "read = lambda: type(@it).__name__\nprint('read', read())"),
        ("read_by_default", "end", "def shown(value=@it):\n    return type(value).__name__\nprint('default', shown())"),
        ("in_decimal", "end", "print('decimal', len(str(Decimal(@it))) > 0)"),
        ("packed", "end", "print('packed', len(struct.pack('d', @it)))"),
        ("as_count", "end", "print('#' * (1 + int(@it) % 5))"),
        ("in_set", "end", "print('set', len({@it, @it}))"),
        ("compared_types", "end", "print('number' if isinstance(@it, (int, float)) else 'other')"),
        ("divided_whole", "end", "print('parts', divmod(@it, 2)[0] >= 0, pow(@it, 2) >= 0)"),
        ("copied_twice", "end", "@first = @second = @it\n@second += 1\nprint('two', f'{@first:.4f} {@second:.4f}')"),
        ("swapped", "end", "@first, @second = @it, -@it\nprint('pair', type(@first).__name__, f'{@second:.4f}')"),
        ("in_dict", "end", "@row = {'epoch': epoch, 'value': @it}\nprint('row', json.dumps(@row))"),
        ("kept_in_order", "end", "$seen_so_far.insert(0, @it)\n$seen_so_far.sort()"),
        ("walrus", "end", "if (@first := @it) >= 0:\n    print('walrus', type(@first).__name__)"),
        ("finally_shown", "end", "try:\n    @it = @it + 0\nfinally:\n    print('finally', type(@it).__name__)"),
        ("numpy_sum", "end", "print('numpy', (np.float64(0.5) + @it).dtype)"),
        ("tensor_of", "end", "print('tensor', torch.tensor([@it, 0.5]).dtype)"),
        ("skipped", "step", "if step == 1:\n    continue\n@it += 0"),
        ("negated", "step", "@it = -(-@it)"),
        ("rounded", "step", "@it = round(@it, 6)"),
        ("shown_at_end", "step", "if step + 1 == 3:\n    print('third', '%.4f' % @it)"),
    ),
    "list": (
        ("typed", "end", "print('type', type(@it[0]).__name__)"),
        ("recent", "step", "if len(@it) > 2 and step % 2 == 0:\n    print('recent', f'{sum(@it[-2:]) / 2:.5f}')"),
        ("last", "step", "if @it[-1] != @it[-1]:\n    break"),
        ("sorted", "end", "print('median', f'{sorted(@it)[len(@it) // 2]:.5f}')"),
        ("dumped", "end", "with open('list.json', 'w') as f:\n    json.dump(@it, f)"),
        ("joined", "end", "print(' '.join(f'{v:.4f}' for v in @it))"),
        ("array", "end", "print('array', np.array(@it).shape, np.array(@it).dtype.kind)"),
        ("tensor", "end", "print('tensor', tuple(torch.tensor(@it).shape))"),
        ("extended", "end", "$seen_so_far.extend(@it)"),
        ("aliased", "start", "@alias = @it\n$aliases.append(@alias)"),
        ("aliased_late", "end", "$aliases.append(@it)"),
        ("cleared", "end", "print('count', len(@it))\n$aliases.append(list(@it))"),
        ("dropped", "step", "if len(@it) > 3:\n    del @it[0]"),
        ("popped", "step", "if step == 1:\n    print('popped', f'{@it.pop():.5f}')\n    @it.append(0.0)"),
        ("changed", "step", "if step == 2:\n    @it[0] = 0.0"),
        ("in_list", "end", "print('one', 1.0 in @it, @it.index(@it[-1]) <= len(@it))"),
        ("compared", "end", "print('falls', @it[0] > @it[-1], max(@it) >= min(@it))"),
        ("pickled", "end", "with open('list.pkl', 'wb') as f:\n    pickle.dump(@it, f)"),
        ("truth", "step", "if @it and step == 0:\n    print('first', f'{@it[0]:.5f}')"),
        ("mapped", "end", "print('sum', f'{math.fsum(@it):.5f}', all(isinstance(v, (int, float)) for v in @it))"),
        ("counted", "step", "$peaks[epoch] = len(@it)"),
        ("windowed", "step", "@it = @it[-5:]"),
        ("unpacked", "end", "print('first', '%.5f' % [*@it][0], len((*@it,)))"),
        ("printed_all", "end", "print(*@it, sep=' ')"),
        ("split", "end", "@first, *@rest = @it\nprint('split', f'{@first:.5f}', len(@rest))"),
        ("zipped", "end", "print('steps', {k: f'{v:.4f}' for k, v in zip(range(9), @it)})"),
        ("as_set", "end", "print('set', len(set(@it)))"),
        ("sorted_here", "end", "@it.sort()\nprint('least', f'{@it[0]:.5f}')"),
        ("doubled", "end", "print('twice', len(@it * 2), len(@it + [0.0]))"),
        ("statistics", "end", "print('median', f'{statistics.median(@it):.5f}')"),
        ("added_up", "end", "print('total', f'{sum(@it, 0.0):.5f}', type(sum(@it)).__name__)"),
        ("copied_deeply", "end", "$aliases.append(copy.deepcopy(@it))\nprint('copy', type($aliases[-1][0]).__name__)"),
        ("counted_same", "end", "print('count', @it.count(@it[0]) >= 1)"),
        ("reduced", "end", "print('largest', f'{functools.reduce(max, @it):.5f}')"),
        ("accumulated", "end", "print('running', [f'{v:.4f}' for v in itertools.accumulate(@it)][-1])"),
        ("named_in_locals", "end", "print('local', type(locals()['@it'][-1]).__name__)"),
        ("iterated", "end", "for @value in @it:\n    assert isinstance(@value, (int, float)), type(@value)"),
        ("indexed", "end", "print('at', f'{@it[np.argmin(@it)]:.5f}')"),
        ("filtered", "end", "@it = [v for v in @it if v > 0.1]\nprint('kept', len(@it))"),
        ("extended_by_self", "end", "@it.extend(@it[:1])\nprint('longer', len(@it))"),
        ("replaced_slice", "end", "@it[:1] = [0.25]\nprint('slice', type(@it[0]).__name__, f'{sum(@it):.5f}')"),
    ),
    "meter": (
        ("value", "step", "if step % 2 == 0:\n    print(f'meter {@it.value:.5f} {@it.average:.5f}')"),
        ("typed", "end", "print('type', type(@it.average).__name__)"),
        ("sum", "end", "$seen_so_far.append(@it.sum)"),
        ("formatted", "end", "print('mean %.5f of %d' % (@it.average, @it.count))"),
        ("compared", "step", "if @it.value > 1e6:\n    break"),
        ("reset", "step", "if step == 2:\n    @it.reset()"),
    ),
    "tensors": (
        ("typed", "end", "print('type', type(@it[0]).__name__, @it[0].dtype)"),
        ("counted", "end", "print('count', len(@it), sum(len(part) for part in @it))"),
        ("last", "step", "if step == 1:\n    print('shape', tuple(@it[-1].shape))"),
        ("read_some", "step", "if step % 2 == 0:\n    print('first', f'{float(@it[-1].reshape(-1)[0]):.5f}')"),
        ("aliased", "start", "$aliases.append(@it)"),
        ("first_changed", "step", "if step == 2:\n    @it[0] = @it[0] * 0"),
        ("dropped", "step", "if len(@it) > 2:\n    del @it[0]"),
        ("again", "end", "print('again', float(sum(part.sum() for part in @it)) != 0.5)"),
    ),
}
"""For each kind of value: how a line of the pass uses it."""
