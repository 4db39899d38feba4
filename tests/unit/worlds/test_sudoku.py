import random

import pytest

from corral.worlds.sudoku import SmallSudoku, Sudoku
from corral.worlds.sudoku.env import BLANK_SHARES
from corral.worlds.sudoku.grid import candidates, has_one_solution, peers, puzzle, solutions, solve
from corral.worlds.sudoku.show import board_text, hint_text
from corral.worlds.sudoku.solver import careless_solver, random_player, solver

SEED = 554931569
BOARD = (3, 4, 2, 1, 1, 0, 4, 0, 4, 3, 1, 0, 0, 1, 3, 4)
SOLUTION = (3, 4, 2, 1, 1, 2, 4, 3, 4, 3, 1, 2, 2, 1, 3, 4)


def game(hints: str | None = None) -> SmallSudoku:
    """The puzzle above, which its seed draws."""
    env = SmallSudoku()
    env.reset(seed=SEED, hints=hints)
    assert tuple(env.board) == BOARD
    return env


@pytest.mark.parametrize("size", [4, 9])
def test_a_full_grid_has_every_number_once_in_each_unit(size: int):
    grid = next(solutions([0] * size**2, size, random.Random(3)))
    assert set(grid) == set(range(1, size + 1))
    assert all(grid[cell] != grid[other] for cell in range(size**2) for other in peers(size)[cell])


@pytest.mark.parametrize(("size", "count"), [(4, 7), (9, 20)])
def test_a_cell_has_as_many_peers_as_its_row_column_and_box_have(size: int, count: int):
    assert {len(others) for others in peers(size)} == {count}


@pytest.mark.parametrize(("size", "blanks"), [(4, 1), (4, 4), (4, 10), (9, 6), (9, 21), (9, 40)])
def test_a_puzzle_has_its_blanks_and_one_solution(size: int, blanks: int):
    grid, solution = puzzle(size, blanks, 5)
    assert grid.count(0) == blanks
    assert list(solutions(grid, size)) == [solution]
    assert all(number in (0, solution[cell]) for cell, number in enumerate(grid))


def test_the_seed_decides_the_puzzle():
    puzzle.cache_clear()
    first = puzzle(9, 21, 7)
    puzzle.cache_clear()
    assert puzzle(9, 21, 7) == first
    assert puzzle(9, 21, 8) != first


def test_a_board_with_two_solutions_is_told_from_one_with_none():
    assert not has_one_solution([0] * 16, 4)
    assert solve([0] * 16, 4) is not None
    broken = [1, 2, 3, 0, *[0] * 3, 4, *[0] * 8]
    assert solve(broken, 4) is None
    assert candidates(broken, 3, 4) == []


def test_the_board_shows_boxes():
    assert board_text(BOARD, 4) == "3 4 | 2 1\n1 . | 4 .\n----+----\n4 3 | 1 .\n. 1 | 3 4"
    lines = board_text(puzzle(9, 21, 0)[0], 9).split("\n")
    assert [len(line) for line in lines] == [21] * 11
    assert lines[3] == lines[7] == "------+-------+------"


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("easy", "Sure: (2, 2) 2, (2, 4) 3, (3, 4) 2, (4, 1) 2"),
        ("medium", "Fits: (2, 2) 2, (2, 4) 3, (3, 4) 2, (4, 1) 2"),
        ("hard", ""),
    ],
)
def test_hints_tell_as_much_as_their_level(level: str, text: str):
    assert hint_text(BOARD, 4, level) == text
    shown = SmallSudoku().reset(seed=SEED, hints=level)
    assert shown == "\n".join([board_text(BOARD, 4), *([text] if text else [])])


def test_easy_hints_tell_what_is_sure_before_what_is_open():
    board = (*(0,) * 4, *BOARD[4:])
    assert hint_text(board, 4, "easy").split("\n")[0].startswith("Sure: ")
    lines = hint_text((0, 0, *(0,) * 10, 0, 1, 3, 4), 4, "easy").split("\n")
    assert lines[0] == "Sure: (4, 1) 2"
    assert lines[1].startswith("Fits: (")
    counts = [part.count("/") for part in lines[1].split("), (")]
    assert sum(line.count("(") for line in lines) == 10
    assert counts == sorted(counts)


def test_an_accepted_number_is_shown_and_the_last_one_solves():
    env = game("hard")
    assert env.place(2, 2, 2).split("\n")[1] == "1 2 | 4 ."
    for row, col, number in ((2, 4, 3), (3, 4, 2)):
        env.place(row, col, number)
        assert not env.done
    assert env.place(4, 1, 2) == "Solved. Game over."
    assert (env.won, env.done, tuple(env.board)) == (True, True, SOLUTION)
    with pytest.raises(ValueError, match=r"^Game over\.$"):
        env.place(4, 1, 2)


@pytest.mark.parametrize(
    ("move", "sentence"),
    [
        ((0, 1, 1), "Row, column and number are 1 to 4."),
        ((1, 5, 1), "Row, column and number are 1 to 4."),
        ((2, 2, 9), "Row, column and number are 1 to 4."),
        ((1, 1, 3), "Cell (1, 1) is given."),
        ((2, 2, 4), "The row, column or box of (2, 2) has a 4 already."),
    ],
)
def test_an_invalid_move_is_answered_with_the_reason(move: tuple[int, int, int], sentence: str):
    env = game()
    assert env.place(*move) == f"{sentence} Try another."
    assert (env.invalid_moves, env.filled, tuple(env.board)) == (1, 0, BOARD)


def test_a_filled_cell_and_a_number_without_a_solution_are_told():
    env = game()
    env.place(2, 2, 2)
    assert env.place(2, 2, 2) == "Cell (2, 2) is filled already. Try another."
    env = SmallSudoku()
    env.reset(seed=0, difficulty="hard")
    cell = next(c for c in range(16) if not env.board[c] and len(candidates(env.board, c, 4)) > 1)
    wrong = next(n for n in candidates(env.board, cell, 4) if n != env._solution[cell])
    assert "leaves no solution" in env.place(cell // 4 + 1, cell % 4 + 1, wrong)


def test_a_second_invalid_move_in_a_row_loses_and_a_valid_one_between_forgives():
    env = game()
    env.place(1, 1, 3)
    env.place(2, 2, 2)
    env.place(1, 1, 3)
    assert not env.done
    assert env.place(1, 1, 3).endswith("Second invalid move in a row: you lost.")
    assert (env.done, env.won, env.invalid_moves) == (True, False, 3)


def test_after_the_last_move_the_game_is_over():
    class Short(SmallSudoku):
        max_moves = 2

    env = Short()
    env.reset(seed=SEED)
    env.place(2, 2, 2)
    assert env.place(2, 4, 3) == "No moves left."
    assert (env.done, env.won) == (True, False)
    env.reset(seed=SEED)
    env.place(2, 2, 2)
    assert env.place(1, 1, 3) == "Cell (1, 1) is given. No moves left."


def parts(*moves: tuple[int, int, int]) -> dict[str, float]:
    env = game()
    for move in moves:
        env.place(*move)
    assert env.get_reward() == pytest.approx(sum(env.reward_parts.values()))
    return env.reward_parts


def test_parts_of_the_reward():
    none = {"empty_cell": 0, "valid_moves": 0, "repetition": 0, "progress": 0, "correct": 0}
    assert parts() == none
    # One accepted; the same again, twice: aimed at a filled cell, refused, repeated once, twice.
    assert parts((2, 2, 2), (2, 2, 2), (2, 2, 2)) == {
        "empty_cell": pytest.approx((1 - 1 - 1) / 3),
        "valid_moves": pytest.approx((1 - 0.5 - 0.5) / 3),
        "repetition": pytest.approx(-(0 + 1 + 2) / 3),
        "progress": 0.25,
        "correct": 0.0,
    }
    # Into a blank cell, but a number that is there already.
    assert parts((2, 2, 4))["empty_cell"] == 1.0
    solved = ((2, 2, 2), (2, 4, 3), (3, 4, 2), (4, 1, 2))
    assert sum(parts(*solved).values()) == pytest.approx(4.0)


@pytest.mark.parametrize(("size", "blanks"), [(9, (6, 21, 40, 52)), (4, (1, 4, 8, 10))])
def test_difficulties_have_the_blanks_that_the_readme_states(size: int, blanks: tuple[int, ...]):
    assert tuple(round(one * size**2) for one in BLANK_SHARES.values()) == blanks


def test_a_difficulty_that_is_none_is_named():
    with pytest.raises(ValueError, match="difficulty='brutal': must be one of very_easy, easy"):
        Sudoku().reset(seed=0, difficulty="brutal")


def test_no_player_reads_the_solution():
    env = game()
    first = [play(env, "", random.Random(5)) for play in (solver, random_player)]
    env._solution = tuple(reversed(SOLUTION))
    assert [play(env, "", random.Random(5)) for play in (solver, random_player)] == first


def test_the_careless_player_writes_any_number_into_the_cell_it_means_to_fill():
    env = game()
    play, right = careless_solver(), solver(env, "", random.Random(0)).arguments
    actions = [play(env, "", random.Random(seed)).arguments for seed in range(300)]
    assert {(each["row"], each["col"]) for each in actions} == {(right["row"], right["col"])}
    assert {each["number"] for each in actions} == {1, 2, 3, 4}
    # Half without a slip, and a fourth of the slips.
    assert 0.55 < sum(action == right for action in actions) / 300 < 0.7
    without = careless_solver(slip_rate=0.0)(env, "", random.Random(0))
    assert without == solver(env, "", random.Random(0))
