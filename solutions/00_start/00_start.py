# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here
#
# Get to know the tools, before the first lecture. After this notebook you can
#
# 1. run a cell, and tell whether this machine is ready for the course;
# 2. read what a check answers, ask for a hint, and turn red into green;
# 3. commit to a prediction before you run a cell;
# 4. make a tensor of a given shape, value and type, on your own.
#
# {{times}}
#
# To run a cell, click into it and press **Shift + Enter**. Run the next one now: it loads what this notebook needs.

# %% setup=true
import sys

import torch

from autograder.check import Checker

check = Checker("00_start")
predict, hint = check.predict, check.hint

# %% [markdown]
# ## Is this machine ready?
#
# Two lines, and both should say `True`. If one does not, put `!"{sys.executable}" -m autograder doctor` into a cell of
# its own (menu Insert, or the key B) and run it: it names what is missing and how to install it. A graphics card is not
# needed anywhere in this course.

# %%
print("Python is new enough:          ", sys.version_info >= (3, 11))
print("torch is the course's release: ", torch.__version__.startswith("2.13"))

# %% [markdown]
# ## One exercise, worked through together
#
# A **tensor** is a grid of numbers. The task: write a function that takes a tensor `x` and returns a new one in which
# every number is one larger. `x` itself stays as it was.
#
# {{card plus_one}}
#
# A card like this one stands above each exercise. Some of its words come later in the course (“view or copy” and
# “strides” in lecture 01): what torch's own functions give you is right in these points unless a check says no.
#
# **Red.** Here is a first attempt. It is wrong on purpose: run the cell and read the table from top to bottom.
# The first rows show the smallest input that fails, the last ones what to do next. (`x = 7, shape ()` is a tensor of a
# single number, without rows and columns. `try` keeps the notebook going; your own check cells have none.)


# %% concepts=["L-G"]
def plus_one(x):
    """A first attempt: the numbers come out right, and still something is wrong."""
    x += 1
    return x


try:
    check(plus_one)
except AssertionError:
    print("\nThe check says no. That is the red state, and it costs nothing.")

# %% [markdown]
# **Hint.** Every exercise has three hints: first an idea, then where to look, then nearly the code. Each call gives
# one more. Hints cost no points. Run the next cell to see the first.
#
# **Green.** `x += 1` writes into the tensor that it was given; `x + 1` makes a new one. So in the cell after
# the hint, put `return x + 1` in place of the line that begins with `raise`, indented as that line is. Run the cell,
# then run the check below it.

# %%
hint(plus_one)


# %% exercise="plus_one"
def plus_one(x):
    """A new tensor in which every element is one larger than in x. The tensor x stays as it was."""
    ### BEGIN SOLUTION
    return x + 1
    ### END SOLUTION


# %% check="plus_one"
check(plus_one)

# %% [markdown]
# If the title of that table starts with ✓, you have your first green. A check is never finished with you: change your
# answer and run both cells again, as often as you like.
#
# **Where it breaks.** A check looks at the function *as it is in memory*. After a change, run the exercise's cell
# first, then the check. If Python says `NameError: name 'plus_one' is not defined`, that cell has not run yet; after a
# restart of the kernel none has, the first one neither. If a cell never ends, *Interrupt Kernel* (Esc, then I twice)
# stops it.

# %% [markdown] tags=["instructor"]
# **Instructor, 3 minutes.** Let everybody reach the ✓ before you go on; walk around once. Common answers: “I ran the
# check and it is still red” (the exercise's cell was not run again), “it says it is not answered” (the line
# `raise NotImplementedError` is still there). Board: red → hint → green as a circle.

# %% [markdown]
# ## Predict first
#
# Guessing before you look makes you remember what you see. So most sections open with a question. Put the letter of
# your choice, in quotes, in place of the dots (`predict("P1", "c")`), and run the cell. Your choice is stored, then
# explained. Predictions are not graded, and a wrong one is worth more than none.
#
# {{question P1}}

# %%
predict("P1", "a")

# %%
print(torch.tensor([1, 2, 3]).dtype)
print(torch.tensor([1.0, 2, 3]).dtype)
print(torch.tensor([True, False]).dtype)

# %% [markdown]
# **Rule.** `torch.tensor` takes the type from the values, unless you name one with `dtype=`.
#
# The second question is about names. A method that ends in `_`, such as `add_`, writes into its tensor, as `+=` does.
#
# {{question P2}}

# %%
predict("P2", "b")

# %%
x = torch.tensor([1, 2])
y = x
y.add_(1)
print("x:", x)
print("y is x:", y is x)

# %% [markdown]
# **Rule.** `=` gives a tensor another name and copies nothing.

# %% [markdown]
# ## Your turn
#
# Three things describe most tensors: the **shape** (how many rows and columns), the **values**, and the **dtype**
# (the type of every number in it). Here is one of each kind, made in four ways.

# %%
print(torch.zeros(2, 2))
print(torch.ones(3, dtype=torch.int32))
print(torch.tensor([[1, 2], [3, 4]], dtype=torch.float32))
print(torch.full((1, 4), 9))

# %% [markdown]
# Now you (objective 4). Write your answer in place of the line that begins with `raise`.
#
# {{card two_by_three}}


# %% exercise="two_by_three"
def two_by_three(value):
    """A tensor of 2 rows and 3 columns, dtype float64, that holds `value` in each of its six places.

    `value` is an int or a float. No digit of it may be lost.
    """
    ### BEGIN SOLUTION
    row = [value, value, value]
    return torch.tensor([row, row], dtype=torch.float64)
    ### END SOLUTION


# %% check="two_by_three"
check(two_by_three)

# %% [markdown]
# **Where it breaks.** float32 keeps about seven decimal digits, float64 about sixteen. What float32 has dropped does
# not come back when you convert the result:

# %%
print("made as float64:      ", torch.tensor(0.1, dtype=torch.float64).item())
print("float32, then float64:", torch.tensor(0.1).double().item())

# %% [markdown] tags=["instructor"]
# **Instructor, 3 minutes.** Common answers: `torch.full((2, 3), value)` (int64 or float32, by the value),
# `torch.full((2, 3), value).double()` (right for every int, and loses digits of 0.1), `(3, 2)`. Ask: “who passed
# every visible case, and would still not bet on the hidden ones?” That leads to the next section.

# %% [markdown]
# ## How grading works
#
# {{question P3}}

# %%
predict("P3", "c")

# %% [markdown]
# - **Points** come from the code cells marked as exercises. Each gives its points in full or not at all.
# - **When it is graded**, your functions run on the visible cases and on further ones: other numbers, and odd inputs
#   such as empty tensors. So write for every input that the task allows.
# - **More than the value** can count: the dtype, whether an argument was changed, whether memory is shared, whether
#   there is a loop. The card of each exercise says what is checked.
# - **What you may change**: the cells of exercises, and any cells you add. The check cells are locked; if one gets
#   lost, `autograder doctor 00_start.ipynb` brings it back.
# - **Before you hand in**: *Restart Kernel and Run All Cells* (menu Kernel). What works then works when it is graded.
#   It stops at the first check that is not green; *Run Selected Cell and All Below* (menu Run) goes on from the next.
#
# The line below shows how far you are. It counts what passed since the kernel started.

# %%
print(check.progress())

# %% [markdown]
# ## Keyboard and screen reader
#
# | to do this | press |
# | --- | --- |
# | run a cell and go to the next | Shift + Enter |
# | run a cell and stay | Ctrl + Enter |
# | leave a cell for the list of cells; go back in | Esc; Enter |
# | move between cells (after Esc) | arrow up, arrow down |
# | new cell above, below (after Esc) | A, B |
# | all commands, with a search field | Ctrl + Shift + C (on a Mac: Cmd + Shift + C) |
# | the documentation of the name under the cursor | Shift + Tab |
#
# - Headings are in order, so you can move from heading to heading.
# - Every drawing is followed by *The same in words*, which opens with Enter. Nothing is said by colour alone.
# - Tables of checks and hints have row headers: name first, then text.
# - Sliders are reached with Tab and moved with the arrow keys. All they show also stands in the text.

# %% [markdown]
# ## Recap
#
# - Run the exercise's cell, then its check. Red shows the smallest failing input, `hint(name)` helps in three steps.
# - Predict before you run.
# - “Visible checks passed” is a good sign, not the grade.
# - A method that ends in `_` writes into its tensor; `=` copies nothing; `dtype=` names the type.
#
# **Words.** *Tensor*: a grid of numbers of one type. *Shape*: its size in each dimension, rows before columns.
# *dtype*: the type of the numbers. *Case*: one set of inputs on which a check calls your function.
#
# Next: **01 · Storage, strides, contiguity**, where you find out what a tensor is made of.

# %% [markdown] tags=["instructor"]
# **Instructor.** If it takes twice the time that stands at its head, the machines are not ready: look at
# `autograder doctor` before the next lecture.
